// Package export writes choices of algorithm by size in the forms that other
// libraries take, and reads them back: the file of NCCL's example tuner plugin,
// NCCL_ALGO and NCCL_PROTO, and a table by message size with the keys of MSCCL++'s
// plans.
package export

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"tutti/model"
	"tutti/model/tuning/nccl"
	"tutti/model/units"
)

// Entry is what is to carry out a collective of some sizes.
type Entry struct {
	Collective model.Collective
	// From and To are the smallest and the largest size, both included.
	From, To  units.Bytes
	Algorithm nccl.Algorithm
	Protocol  model.Protocol
	Channels  int
	// Nodes and Ranks are the size of the communicator.
	Nodes, Ranks int
}

// tunerNames are the plugin's names of NCCL's algorithms, in their order.
var tunerNames = []string{"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"}

const tunerHeader = "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks"

// WriteTuner writes the file that NCCL_TUNER_CONFIG_FILE names for the example
// tuner plugin of NCCL 2.28 (ext-tuner/example).
func WriteTuner(w io.Writer, entries []Entry) error {
	var b strings.Builder
	b.WriteString(tunerHeader + "\n")
	for _, e := range entries {
		fmt.Fprintf(&b, "%v,%d,%d,%s,%v,%d,%d,%d\n", e.Collective, e.From, e.To, tunerNames[e.Algorithm], e.Protocol, e.Channels, e.Nodes, e.Ranks)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ReadTuner reads what WriteTuner writes; further columns may follow. An error
// names the line.
func ReadTuner(r io.Reader, name string) (entries []Entry, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		e, err := parseTuner(strings.Split(line, ","))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		entries = append(entries, e)
	}
	return entries, lines.Err()
}

func parseTuner(fields []string) (e Entry, err error) {
	if len(fields) < 8 {
		return e, fmt.Errorf("%d columns: want %s", len(fields), strings.TrimPrefix(tunerHeader, "# "))
	}
	if e.Collective, err = model.ParseCollective(fields[0]); err != nil {
		return e, err
	}
	a := slices.Index(tunerNames, fields[3])
	if a < 0 {
		return e, fmt.Errorf("unknown algorithm %q: want one of %s", fields[3], strings.Join(tunerNames, ", "))
	}
	e.Algorithm = nccl.Algorithm(a)
	if e.Protocol, err = model.ParseProtocol(fields[4]); err != nil {
		return e, err
	}
	var from, to int
	for _, number := range []struct {
		at int
		to *int
	}{{1, &from}, {2, &to}, {5, &e.Channels}, {6, &e.Nodes}, {7, &e.Ranks}} {
		if *number.to, err = strconv.Atoi(fields[number.at]); err != nil {
			return e, fmt.Errorf("%q: want a whole number", fields[number.at])
		}
	}
	if from < 0 || to < from {
		return e, fmt.Errorf("sizes %d to %d: want the smaller one first, from 0 up", from, to)
	}
	e.From, e.To = units.Bytes(from), units.Bytes(to)
	return e, nil
}

// Environment returns NCCL_ALGO and NCCL_PROTO so that NCCL has the algorithms
// and protocols of the entries to choose from, and no others. They cannot say
// which for which size.
func Environment(entries []Entry) nccl.Settings {
	list := func(name func(Entry) string) string {
		var parts []string
		for _, c := range nccl.Functions() {
			var words []string
			for _, e := range entries {
				if word := name(e); e.Collective == c && !slices.Contains(words, word) {
					words = append(words, word)
				}
			}
			if len(words) > 0 {
				parts = append(parts, c.String()+":"+strings.Join(words, ","))
			}
		}
		return strings.Join(parts, ";")
	}
	return nccl.Settings{
		Algo:  list(func(e Entry) string { return e.Algorithm.String() }),
		Proto: list(func(e Entry) string { return nccl.ProtocolName(e.Protocol) }),
	}
}

// WriteEnvironment writes the settings of [Environment] as a shell sets them.
func WriteEnvironment(w io.Writer, entries []Entry) error {
	s := Environment(entries)
	_, err := fmt.Fprintf(w, "NCCL_ALGO=\"%s\"\nNCCL_PROTO=\"%s\"\n", s.Algo, s.Proto)
	return err
}

// CheckEnvironment reads what WriteEnvironment writes, and fails unless it leaves
// NCCL the algorithms and protocols of the entries and no others.
func CheckEnvironment(r io.Reader, name string, entries []Entry) error {
	var s nccl.Settings
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		key, value, _ := strings.Cut(lines.Text(), "=")
		to, known := map[string]*string{"NCCL_ALGO": &s.Algo, "NCCL_PROTO": &s.Proto}[key]
		value, err := strconv.Unquote(value)
		if !known || err != nil {
			return fmt.Errorf("%s:%d: %q: want NCCL_ALGO=\"…\" or NCCL_PROTO=\"…\"", name, n, lines.Text())
		}
		*to = value
	}
	if err := lines.Err(); err != nil {
		return err
	}
	for _, c := range nccl.Functions() {
		wanted := func(e Entry) bool { return e.Collective == c }
		if !slices.ContainsFunc(entries, wanted) {
			continue
		}
		algorithms, protocols, err := s.Left(c)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, e := range entries {
			if wanted(e) && !(slices.Contains(algorithms, e.Algorithm) && slices.Contains(protocols, e.Protocol)) {
				return fmt.Errorf("%s: %v over %v is not left for %v", name, e.Algorithm, e.Protocol, c)
			}
		}
		for _, a := range algorithms {
			if !slices.ContainsFunc(entries, func(e Entry) bool { return wanted(e) && e.Algorithm == a }) {
				return fmt.Errorf("%s: %v is left for %v", name, a, c)
			}
		}
		for _, p := range protocols {
			if !slices.ContainsFunc(entries, func(e Entry) bool { return wanted(e) && e.Protocol == p }) {
				return fmt.Errorf("%s: %v is left for %v", name, p, c)
			}
		}
	}
	return nil
}

// plan is an entry with the keys of MSCCL++'s execution plans.
type plan struct {
	Name       string `json:"name"`
	Collective string `json:"collective"`
	Algorithm  string `json:"algorithm"`
	Protocol   string `json:"protocol"`
	From       int64  `json:"min_message_size"`
	To         int64  `json:"max_message_size"`
	Channels   int    `json:"channels"`
	Nodes      int    `json:"nodes"`
	Ranks      int    `json:"ranks"`
}

// WriteTable writes a JSON list by message size, with the keys that MSCCL++'s
// plans have for it (name, collective, protocol, min_message_size,
// max_message_size).
func WriteTable(w io.Writer, entries []Entry) error {
	plans := make([]plan, len(entries))
	for i, e := range entries {
		plans[i] = plan{
			fmt.Sprintf("%v_%s_%v", e.Collective, tunerNames[e.Algorithm], e.Protocol), e.Collective.String(), tunerNames[e.Algorithm],
			nccl.ProtocolName(e.Protocol), int64(e.From), int64(e.To), e.Channels, e.Nodes, e.Ranks,
		}
	}
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	return out.Encode(plans)
}

// ReadTable reads what WriteTable writes. An error names the plan.
func ReadTable(r io.Reader, name string) (entries []Entry, err error) {
	var plans []plan
	if err := json.NewDecoder(r).Decode(&plans); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i, p := range plans {
		e, err := parseTuner([]string{
			p.Collective, strconv.FormatInt(p.From, 10), strconv.FormatInt(p.To, 10), p.Algorithm, p.Protocol,
			strconv.Itoa(p.Channels), strconv.Itoa(p.Nodes), strconv.Itoa(p.Ranks),
		})
		if err != nil {
			return nil, fmt.Errorf("%s: plan %d: %w", name, i+1, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}
