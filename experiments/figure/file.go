// Package figure draws result rows: bus bandwidth against size, as PNG, SVG or
// PDF.
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

// Write draws the rows, at least one, with a dashed line at each of some sizes.
// The file appears under its name only when it is whole.
func Write(path string, list []rows.Row, marks ...units.Bytes) error {
	canvas, err := busBandwidth(list, format(path), marks)
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
