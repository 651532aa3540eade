// Package kernels holds the CUDA C++ sources of the CUDA backend and the PTX
// built from them by build.sh, embedded in the binary, so that users need the
// NVIDIA driver and nothing else. The first line of each PTX file records the
// sources' digest; a test fails when it is not that of the sources.
package kernels

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"
)

//go:embed ptx
var files embed.FS

// PTX returns a module's text: the kernels of a datatype and operation are those of
// "float_sum". Where kernels are named it has these alone, as the driver takes as long
// as the text to compile it. The error says that there is none.
func PTX(name string, wanted ...string) ([]byte, error) {
	packed, err := files.ReadFile("ptx/" + name + ".ptx.gz")
	if err != nil {
		return nil, fmt.Errorf("no kernels named %q are built in", name)
	}
	text, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("kernels %q: %w", name, err)
	}
	all, err := io.ReadAll(text)
	if err != nil || len(wanted) == 0 {
		return all, err
	}
	return only(all, wanted)
}

// only leaves those kernels of a module that are wanted. Kernels call no functions.
func only(all []byte, wanted []string) ([]byte, error) {
	var kept []byte
	found, keep := 0, true
	for line := range bytes.Lines(all) {
		if rest, begins := strings.CutPrefix(string(line), ".visible .entry "); begins {
			kernel, _, _ := strings.Cut(rest, "(")
			if keep = slices.Contains(wanted, kernel); keep {
				found++
			}
		}
		if keep {
			kept = append(kept, line...)
		}
		keep = keep || string(line) == "}\n"
	}
	if found != len(wanted) {
		return nil, fmt.Errorf("%d of the kernels %v are built in: want all", found, wanted)
	}
	return kept, nil
}
