// Command tutti predicts how fast a collective is on a GPU cluster, and why.
//
// It exits with 0 when all went well, with 1 when something failed, with 2
// when it was called wrongly, and with 130 when it was interrupted.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Stdout, os.Stderr, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "tutti: %v\n", err)
		os.Exit(exitCode(err))
	}
}

// run is the program: data goes to stdout, progress and notes to stderr.
func run(stdout, stderr io.Writer, args []string) error {
	root := newRoot()
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetArgs(args)
	return root.Execute()
}

// usageError says that the program was called wrongly.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usage marks an error, if any, as one of usage.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// errInterrupted says that the user ended the program with Ctrl-C.
var errInterrupted = errors.New("interrupted")

func exitCode(err error) int {
	if errors.Is(err, errInterrupted) {
		return 130
	}
	if errors.As(err, &usageError{}) {
		return 2
	}
	return 1
}
