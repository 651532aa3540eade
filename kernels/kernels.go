// Package kernels holds the CUDA C++ sources of the CUDA backend and the PTX
// built from them by build.sh, embedded in the binary, so that users need the
// NVIDIA driver and nothing else. The first line of each module records the
// sources' digest; a test fails when it is not that of the sources.
package kernels

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

//go:embed ptx
var files embed.FS

// PTX returns a module's text: the kernels of a datatype and operation are those of
// "float_sum". Where kernels are named it has these alone, as the driver takes as long
// as the text to compile it. The error says that there is none.
func PTX(name string, wanted ...string) ([]byte, error) {
	archive, _, _ := strings.Cut(name, "_") // "nvls" has those of multicast
	packed, err := files.ReadFile("ptx/" + archive + ".ptx.zst")
	if err != nil {
		return nil, missing(name)
	}
	unpack, err := decoder()
	if err != nil {
		return nil, err
	}
	text, err := unpack.DecodeAll(packed, make([]byte, 0, ratio*len(packed)))
	if err != nil {
		return nil, fmt.Errorf("kernels %q: %w", name, err)
	}
	begin := bytes.Index(text, []byte(heading+name+":"))
	if begin < 0 {
		return nil, missing(name)
	}
	all := text[begin:]
	if end := bytes.Index(all[1:], []byte(heading)); end >= 0 {
		all = all[:1+end]
	}
	if len(wanted) == 0 {
		return all, nil
	}
	return only(all, wanted)
}

const (
	heading = "// module " // begins each module of an archive
	ratio   = 48           // by which archives grow at the most
)

var decoder = sync.OnceValues(func() (*zstd.Decoder, error) { return zstd.NewReader(nil) })

func missing(name string) error { return fmt.Errorf("no kernels named %q are built in", name) }

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
