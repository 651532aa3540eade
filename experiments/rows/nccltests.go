package rows

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"tutti/model"
	"tutti/model/units"
)

// columns are those of a program of nccl-tests, as its header names them, for
// the out-of-place run; the same four follow for the one in place.
var columns = strings.Fields("size count type redop root time algbw busbw #wrong time algbw busbw #wrong")

// ReadNCCLTests reads the log of a program of nccl-tests 2.x: the out-of-place
// times. Ranks and nodes come from its list of devices; machine, collective,
// algorithm, protocol and channels, which it does not say, are as in like.
//
// It fails, naming the line, for columns of another version, a row cut short, a
// number that is none, results that were wrong, a bus bandwidth that is not that
// of the collective, and for a log without rows or without its end.
func ReadNCCLTests(r io.Reader, name string, like Row) ([]Row, error) {
	l := logReader{like: like, hosts: map[string]bool{}}
	l.like.Source = name
	n := 0
	for lines := bufio.NewScanner(r); lines.Scan(); {
		n++
		if err := l.line(strings.TrimSpace(lines.Text())); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	switch {
	case l.like.Ranks == 0:
		return nil, fmt.Errorf("%s: no list of devices (# Rank …): want the whole log of a program of nccl-tests", name)
	case len(l.rows) == 0:
		return nil, fmt.Errorf("%s: no rows", name)
	case !l.ended:
		return nil, fmt.Errorf("%s: cut short after %d rows: want the line # Avg bus bandwidth at the end", name, len(l.rows))
	}
	return l.rows, nil
}

// logReader goes through the lines of a log.
type logReader struct {
	like   Row
	hosts  map[string]bool
	titled bool // the columns are those that are known
	ended  bool
	rows   []Row
}

// programs are nccl-tests' names of the collectives.
var programs = map[string]model.Collective{
	"all_reduce_perf": model.AllReduce, "all_gather_perf": model.AllGather, "reduce_scatter_perf": model.ReduceScatter,
	"broadcast_perf": model.Broadcast, "reduce_perf": model.Reduce, "alltoall_perf": model.AllToAll, "sendrecv_perf": model.SendRecv,
}

func (l *logReader) line(line string) error {
	words := strings.Fields(strings.TrimPrefix(line, "#"))
	switch {
	case line == "" || len(words) == 0:
		return nil
	case !strings.HasPrefix(line, "#"):
		if _, err := strconv.Atoi(words[0]); err != nil {
			return nil // of the launcher, or of NCCL_DEBUG
		}
		return l.row(words)
	case words[0] == "Rank":
		return l.device(words)
	case words[0] == "size":
		// The header stands in two or three lines; the first has the names.
		if !slices.Equal(words, columns) {
			return fmt.Errorf("columns %s: want %s", strings.Join(words, " "), strings.Join(columns, " "))
		}
		l.titled = true
	case strings.HasPrefix(line, "# Collective test starting:"):
		c, known := programs[words[len(words)-1]]
		if !known {
			return fmt.Errorf("%s: not a program of nccl-tests that is known", words[len(words)-1])
		}
		l.like.Collective = c
	case strings.HasPrefix(line, "# Out of bounds values"):
		if words[len(words)-1] != "OK" {
			return fmt.Errorf("%s: results were wrong", strings.Join(words, " "))
		}
	case strings.HasPrefix(line, "# Avg bus bandwidth"):
		l.ended = true
	}
	return nil
}

// device counts a rank and the host that it is on.
func (l *logReader) device(words []string) error {
	at := slices.Index(words, "on")
	if at < 0 || at+1 >= len(words) {
		return fmt.Errorf("device %q: want # Rank N … on HOST device …", strings.Join(words, " "))
	}
	l.like.Ranks++
	l.hosts[words[at+1]] = true
	l.like.Nodes = len(l.hosts)
	return nil
}

func (l *logReader) row(words []string) error {
	if !l.titled {
		return fmt.Errorf("a row before the names of the columns: want # %s", strings.Join(columns, " "))
	}
	if len(words) != len(columns) {
		return fmt.Errorf("%d columns: want %d: %s", len(words), len(columns), strings.Join(columns, " "))
	}
	var p parser
	r := l.like
	r.Bytes = units.Bytes(p.int("size", words[0], 0, 1<<62))
	r.Datatype = read(&p, model.ParseDatatype, words[2])
	r.Redop = model.Sum
	if words[3] != "none" {
		r.Redop = read(&p, model.ParseRedop, words[3])
	}
	us := p.number("time", words[5])
	algbw, busbw := p.number("algbw", words[6]), p.number("busbw", words[7])
	if wrong := words[8]; wrong != "N/A" && wrong != "0" {
		p.keep(fmt.Errorf("#wrong is %q: results were wrong", wrong))
	}
	if p.err != nil {
		return p.err
	}
	if us == 0 || r.Bytes == 0 {
		return nil // a size that has no element for every rank
	}
	r.Time = units.FromMicroseconds(us)
	if want := algbw * r.Collective.BusFactor(r.Ranks); math.Abs(busbw-want) > .02*want+.02 {
		return fmt.Errorf("busbw is %g GB/s, and %v of %d ranks has %.2f: want the log of that collective", busbw, r.Collective, r.Ranks, want)
	}
	l.rows = append(l.rows, r)
	return nil
}

// number reads a number from 0 up.
func (p *parser) number(what, s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v < 1e12) {
		p.keep(fmt.Errorf("%s is %q: want a number", what, s))
		return 0
	}
	return v
}
