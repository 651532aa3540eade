// Package notebooks holds Jupyter notebooks in Go that use tutti as a library,
// with their outputs and figures. They run in Jupyter with GoNB
// (https://github.com/janpfeifer/gonb); the test of this package runs their cells
// as plain programs and compares what they print and draw.
package notebooks
