package nccl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Table is a table of costs as NCCL logged it, to the digits that it prints.
type Table struct {
	costs   [len(collectives)][algorithms][protocols]Cost
	threads [algorithms][protocols]int
	block   []Algorithm // whose rows come next
	rows    int
}

// Whole tells whether every row of every algorithm has been read.
func (t *Table) Whole() bool {
	blocks := (int(algorithms) + perBlock - 1) / perBlock
	return t.rows == blocks*len(collectives)
}

// Empty tells whether no row has been read.
func (t *Table) Empty() bool { return t.rows == 0 }

// Line reads a line of a log; known is false for one that is no part of a table.
func (t *Table) Line(line string) (known bool, err error) {
	cells := strings.Split(line, "|")
	head := strings.TrimSpace(cells[0])
	if len(cells) < 3 {
		return false, nil
	}
	cells = cells[1 : len(cells)-1]
	switch f := slices.Index(functionNames[:], head); {
	case head == "Algorithm":
		t.block = nil
		for _, cell := range cells {
			a := slices.Index(algorithmNames[:], strings.TrimSpace(cell))
			if a < 0 {
				return true, fmt.Errorf("tuning table: unknown algorithm %q: want one of %s", strings.TrimSpace(cell), strings.Join(algorithmNames[:], ", "))
			}
			t.block = append(t.block, Algorithm(a))
		}
	case head == "Protocol":
	case head == "Max NThreads":
		return true, t.each(cells, func(a Algorithm, p int, cell string) (err error) {
			t.threads[a][p], err = strconv.Atoi(cell)
			return err
		})
	case f >= 0:
		t.rows++
		return true, t.each(cells, func(a Algorithm, p int, cell string) error {
			latency, bandwidth, _ := strings.Cut(cell, "/")
			l, err := strconv.ParseFloat(strings.TrimSpace(latency), 32)
			if err != nil {
				return err
			}
			b, err := strconv.ParseFloat(strings.TrimSpace(bandwidth), 32)
			t.costs[f][a][p] = Cost{float32(l), float32(b)}
			return err
		})
	default:
		return false, nil
	}
	return true, nil
}

// each goes through the cells of a row: three protocols for each algorithm of
// the block.
func (t *Table) each(cells []string, read func(a Algorithm, p int, cell string) error) error {
	if len(t.block) == 0 || len(cells) != protocols*len(t.block) {
		return fmt.Errorf("tuning table: %d cells for %d algorithms: want three for each", len(cells), len(t.block))
	}
	for i, cell := range cells {
		if err := read(t.block[i/protocols], i%protocols, strings.TrimSpace(cell)); err != nil {
			return fmt.Errorf("tuning table: %q: want a number, or two with / between", strings.TrimSpace(cell))
		}
	}
	return nil
}

// NewFromTable returns the model of a communicator with the costs that NCCL
// logged in the place of computed ones.
func NewFromTable(c Communicator, t *Table) *Model {
	c.share()
	return &Model{comm: c, costs: t.costs, threads: t.threads, channels: c.channels(false), nvlsChannels: c.nvlsChannels()}
}
