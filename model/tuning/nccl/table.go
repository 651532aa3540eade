package nccl

import (
	"fmt"
	"io"
	"strings"
)

// perBlock is how many algorithms stand side by side in a log.
const perBlock = 3

// WriteTable writes the costs in the layout of NCCL's log (NCCL_DEBUG=INFO,
// NCCL_DEBUG_SUBSYS=TUNING): latency in us / bandwidth in GB/s. It writes nothing
// for a single rank, as NCCL does.
func (m *Model) WriteTable(w io.Writer) error {
	if m.comm.Ranks == 1 {
		return nil
	}
	var b strings.Builder
	for first := Algorithm(0); first < algorithms; first += perBlock {
		block := Algorithms()[first:min(first+perBlock, algorithms)]
		b.WriteString("  Algorithm   |")
		for _, a := range block {
			fmt.Fprintf(&b, " %14s   %14s   %14s |", "", a, "")
		}
		b.WriteString("\n  Protocol    |" + strings.Repeat(fmt.Sprintf(" %14s | %14s | %14s |", protocolNames[0], protocolNames[1], protocolNames[2]), perBlock))
		b.WriteString("\n Max NThreads |")
		for _, a := range block {
			for p := range protocols {
				fmt.Fprintf(&b, " %14d |", m.threads[a][p])
			}
		}
		for f, name := range functionNames {
			fmt.Fprintf(&b, "\n%13s |", name)
			for _, a := range block {
				for p := range protocols {
					cost := m.costs[f][a][p]
					fmt.Fprintf(&b, "%8.1f/%6.1f |", cost.Latency, cost.Bandwidth)
				}
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
