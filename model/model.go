// Package model is the vocabulary of collective communication: which
// collective, by which algorithm, over which protocol, on which datatype and
// operation. The names are those of NCCL and nccl-tests in lower case, and
// every type here prints and parses the same way.
//
// What is computed from this vocabulary has a package of its own:
//
//	model/units     bytes, rates and times
//	model/profile   what a machine's kernels and wires cost, each figure with its source
//	model/tuning    which protocol and how many channels, as NCCL would choose
//	model/schedule  the collective as a network of workers joined by FIFOs
package model

import (
	"fmt"
	"slices"
	"strings"
)

// parse finds s among names, whatever its case. The error lists the names.
func parse[T ~int](what string, names []string, s string) (T, error) {
	if i := slices.Index(names, strings.ToLower(s)); i >= 0 {
		return T(i), nil
	}
	return 0, fmt.Errorf("unknown %s %q: want one of %s", what, s, strings.Join(names, ", "))
}

// name writes the i-th of names, or the number of a value that has no name.
func name[T ~int](names []string, i T) string {
	if int(i) < 0 || int(i) >= len(names) {
		return fmt.Sprintf("%T(%d)", i, int(i))
	}
	return names[i]
}

// all lists every value that has a name, in order.
func all[T ~int](names []string) []T {
	values := make([]T, len(names))
	for i := range values {
		values[i] = T(i)
	}
	return values
}
