// Package figure draws result rows, as PNG, SVG or PDF: bus bandwidth against
// size, or time against ranks.
package figure

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tutti/experiments/rows"
	"tutti/model/units"
)

// Formats are the suffixes of files that can be written.
var Formats = []string{".png", ".svg", ".pdf"}

// ErrFormat says that a file's name has none of the [Formats].
var ErrFormat = fmt.Errorf("want a name that ends in %s", strings.Join(Formats, ", "))

// Check tells whether a figure can be written to path, so that long work need
// not end in vain: the error is [ErrFormat], or says why no file can be made
// there.
func Check(path string) error {
	if !slices.Contains(Formats, format(path)) {
		return fmt.Errorf("figure %s: %w", path, ErrFormat)
	}
	temp, err := create(path)
	if err != nil {
		return err
	}
	return errors.Join(temp.Close(), os.Remove(temp.Name()))
}

func format(path string) string { return strings.ToLower(filepath.Ext(path)) }

// create makes a file beside path, to be renamed when it is whole.
func create(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("figure %s: there is something that is not a regular file", path)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".tutti-*")
	if cause := (*fs.PathError)(nil); errors.As(err, &cause) {
		return nil, fmt.Errorf("figure %s: cannot be written: %w", path, cause.Err)
	}
	return temp, err
}

// Write draws the rows, at least one: bus bandwidth against size, with a dashed
// line at each of some sizes. The file appears under its name only when it is
// whole.
func Write(path string, list []rows.Row, marks ...units.Bytes) error {
	return WriteBy(path, list, Size, marks...)
}

// WriteBy is [Write] along one of the [Axes]: by ranks it is time that is drawn.
func WriteBy(path string, list []rows.Row, x string, marks ...units.Bytes) error {
	by := axisOf(x)
	all, grouped := panels(list, by)
	return draws(path, title(list), all, grouped, by, marks)
}

// Line is one line of a figure.
type Line struct {
	// Panel is the title of the plot that the line is in, and Name is the line's.
	Panel, Name string
	Rows        []rows.Row
}

// WriteLines draws lines that the caller has sorted, at least one with one row.
func WriteLines(path, title string, lines []Line, x string) error {
	var all []panel
	for _, l := range lines {
		p := find(&all, func(p panel) bool { return p.title == l.Panel }, panel{title: l.Panel})
		p.lines = append(p.lines, line{name: l.Name, rows: l.Rows})
	}
	return draws(path, title, all, false, axisOf(x), nil)
}

// draws makes the file of panels.
func draws(path, title string, all []panel, grouped bool, by axis, marks []units.Bytes) error {
	canvas, err := drawPanels(title, all, grouped, format(path), by, marks)
	if err != nil {
		return fmt.Errorf("figure %s: %w", path, err)
	}
	return write(path, canvas)
}

// write makes the file of a canvas.
func write(path string, canvas io.WriterTo) error {
	temp, err := create(path)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(temp)
	if err = errors.Join(err, temp.Chmod(0o644), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return fmt.Errorf("figure %s: %w", path, err)
	}
	return nil
}
