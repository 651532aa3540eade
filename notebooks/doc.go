// Package notebooks will hold Jupyter notebooks in Go (GoNB) that show how to
// use tutti as a library. None is written yet.
package notebooks
