package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeFile writes a file that appears under its name only when it is whole.
func writeFile(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: there is something that is not a regular file", path)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".tutti-*")
	if cause := (*fs.PathError)(nil); errors.As(err, &cause) {
		return fmt.Errorf("%s: cannot be written: %w", path, cause.Err)
	}
	if err != nil {
		return err
	}
	err = write(temp)
	if err = errors.Join(err, temp.Chmod(0o644), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
