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
)

//go:embed ptx
var files embed.FS

// PTX returns a module's text: AllReduce of a datatype and operation is named
// "float_sum". The error says that there is none.
func PTX(name string) ([]byte, error) {
	packed, err := files.ReadFile("ptx/" + name + ".ptx.gz")
	if err != nil {
		return nil, fmt.Errorf("no kernels named %q are built in", name)
	}
	text, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("kernels %q: %w", name, err)
	}
	return io.ReadAll(text)
}
