package nccl

import (
	"fmt"
	"strings"

	"tutti/model/units"
)

// Range is a run of sizes for which NCCL's choice is the same.
type Range struct {
	First, Last Choice
	// From and To are the smallest and the largest size.
	From, To units.Bytes
}

// Ranges goes through the sizes and joins those with one choice of algorithm and
// protocol. It fails as [Model.Choose] does.
func (m *Model) Ranges(c Call, sizes []units.Bytes) ([]Range, error) {
	var list []Range
	for _, size := range sizes {
		c.Bytes = size
		choice, err := m.Choose(c)
		if err != nil {
			return nil, err
		}
		if n := len(list); n > 0 && list[n-1].Last.Algorithm == choice.Algorithm && list[n-1].Last.Protocol == choice.Protocol {
			list[n-1].Last, list[n-1].To = choice, size
			continue
		}
		list = append(list, Range{choice, choice, size, size})
	}
	return list, nil
}

// String writes a range with the times at its ends, in microseconds:
// "Ring/LL 8..2M (10.20..32.51)".
func (r Range) String() string {
	return fmt.Sprintf("%v/%s %s..%s (%.2f..%.2f)", r.First.Algorithm, ProtocolName(r.First.Protocol), short(r.From), short(r.To), r.First.Time, r.Last.Time)
}

// short writes a size as nccl-tests reads it: "8", "2M".
func short(b units.Bytes) string {
	return strings.NewReplacer(" B", "", " ", "", "iB", "").Replace(b.String())
}
