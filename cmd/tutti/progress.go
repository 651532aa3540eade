package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// progress shows how far long work is, on one line that is written over. It is
// silent unless it goes to a terminal.
type progress struct {
	to    io.Writer
	total int
	done  int
}

// newProgress returns a progress line on w for the given number of steps.
func newProgress(w io.Writer, total int) *progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		w = io.Discard
	}
	return &progress{to: w, total: total}
}

// step shows what is begun now.
func (p *progress) step(what string) {
	p.done++
	fmt.Fprintf(p.to, "\r\x1b[K%d of %d: %s", p.done, p.total, what)
}

// end clears the line.
func (p *progress) end() { fmt.Fprint(p.to, "\r\x1b[K") }
