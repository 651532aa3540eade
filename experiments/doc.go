// Package experiments holds what was tried and what came of it: one folder an
// experiment, with what was run, the raw data with the machine's description,
// and the figures; and the code that all of them share:
//
//	experiments/rows        the schema of results, as CSV, JSON and table
//	experiments/sweep       many simulations, a row for each
//	experiments/figure      rows drawn as PNG, SVG or PDF
//	experiments/firstlight  first predictions against measured times
package experiments
