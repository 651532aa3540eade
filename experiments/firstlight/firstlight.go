// Package firstlight holds the simulator's first predictions against measured
// and published times. See README.md for what was run and accuracy.md for the
// figures, which the package's test computes anew.
package firstlight
