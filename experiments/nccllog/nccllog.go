// Package nccllog recovers from the log of a job, written by NCCL with
// NCCL_DEBUG=INFO, what it ran on: the machine as NCCL saw it, the graphs that it
// found and the table that it chose by.
package nccllog

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tutti/model/tuning/nccl"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// Log is what a log says.
type Log struct {
	// Version is NCCL's, as in "2.28.3".
	Version string
	// Plugin names the network, as in "Socket" and "IB", where the log says.
	Plugin  string
	Cluster *topo.Cluster
	Graphs  search.Graphs
	// Table is empty where the log has none (NCCL_DEBUG_SUBSYS=TUNING).
	Table *nccl.Table
}

// prefix is what NCCL writes before a line: host:pid:tid [dev] NCCL INFO.
var prefix = regexp.MustCompile(`^.*?\bNCCL (?:INFO|WARN) ?`)

var (
	versionForm = regexp.MustCompile(`NCCL version (\d[\w.]*)`)
	commForm    = regexp.MustCompile(`^comm \S+ rank (\d+) nRanks (\d+) nNodes (\d+) localRanks (\d+)`)
	patternForm = regexp.MustCompile(`^Pattern (\d+), crossNic (\d+), nChannels (\d+), bw ([\d.]+)/([\d.]+), type (\w+)/(\w+), sameChannels (\d)`)
	channelForm = regexp.MustCompile(`^ ?\d+ :((?: (?:GPU|NET)/[0-9A-Fa-f]+-[0-9A-Fa-f]+)+)\s*$`)
	nodeForm    = regexp.MustCompile(`^( *)(?:\+ (\w+)\[([\d.]+)\] - )?(CPU|PCI|GPU|NIC|NET|NVS)/[0-9A-Fa-f]+-([0-9A-Fa-f]+)(?: \(([^)]*)\))?\s*$`)
)

// Read reads the log of one rank or of several; what counts is what the first
// says. It fails, naming the line, for a table that is not NCCL's, and for a log
// that does not have the machine, the communicator or the graphs.
func Read(r io.Reader, name string) (*Log, error) {
	p := parser{log: &Log{Table: &nccl.Table{}}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if err := p.line(prefix.ReplaceAllString(lines.Text(), "")); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := p.finish(name); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p.log, nil
}

// graph is a graph as the log has it.
type graph struct {
	search.Graph
	channels int // that it says to have
	ends     [][]string
}

type parser struct {
	log                  *Log
	ranks, nodes, local  int
	system               machine
	inSystem, pastSystem bool
	graphs               []graph
}

func (p *parser) line(line string) error {
	switch {
	case strings.HasPrefix(line, "=== System :"):
		p.inSystem = !p.pastSystem
		return nil
	case strings.HasPrefix(line, "====="):
		p.pastSystem = p.pastSystem || p.inSystem
		p.inSystem = false
		return nil
	case p.inSystem:
		return p.system.line(line)
	}
	if f := versionForm.FindStringSubmatch(line); f != nil && p.log.Version == "" {
		p.log.Version = f[1]
	}
	if plugin, ok := strings.CutPrefix(line, "NET/"); ok && strings.Contains(plugin, " : Using ") {
		p.log.Plugin = strings.Fields(plugin)[0]
	}
	if f := commForm.FindStringSubmatch(line); f != nil && p.ranks == 0 {
		p.ranks, p.nodes, p.local = number(f[2]), number(f[3]), number(f[4])
	}
	if f := patternForm.FindStringSubmatch(line); f != nil && p.ranks == 0 {
		g := graph{channels: number(f[3])}
		g.Pattern, g.CrossNic, g.SameChannels = search.Pattern(number(f[1])), number(f[2]), f[8] == "1"
		g.BwIntra, g.BwInter = rate(f[4]), rate(f[5])
		var known bool
		if g.TypeIntra, known = pathType(f[6]); !known {
			return fmt.Errorf("unknown path type %q", f[6])
		}
		if g.TypeInter, known = pathType(f[7]); !known {
			return fmt.Errorf("unknown path type %q", f[7])
		}
		p.graphs = append(p.graphs, g)
		return nil
	}
	if f := channelForm.FindStringSubmatch(line); f != nil && len(p.graphs) > 0 && p.ranks == 0 {
		g := &p.graphs[len(p.graphs)-1]
		g.ends = append(g.ends, strings.Fields(f[1]))
		return nil
	}
	if p.log.Table.Whole() {
		return nil
	}
	_, err := p.log.Table.Line(line)
	return err
}

// finish builds the machine and the graphs.
func (p *parser) finish(name string) error {
	switch {
	case len(p.system.gpus) == 0:
		return fmt.Errorf("no machine (=== System :): want NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING from the start of the job")
	case p.ranks == 0:
		return fmt.Errorf("no communicator (comm … rank … nRanks …): want NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING")
	case p.nodes < 1 || p.local < 1 || p.ranks != p.nodes*p.local:
		return fmt.Errorf("%d ranks on %d nodes, %d of them here: want as many on each node", p.ranks, p.nodes, p.local)
	case !p.log.Table.Empty() && !p.log.Table.Whole():
		return fmt.Errorf("the tuning table is cut short")
	}
	system, err := topo.ReadXML(strings.NewReader(p.system.xml()), name)
	if err != nil {
		return fmt.Errorf("the machine that the log shows: %w", err)
	}
	if p.log.Cluster, err = topo.NewCluster(system, p.nodes, p.local, topo.RailOptimised); err != nil {
		return err
	}
	p.log.Graphs.NVLSError = fmt.Errorf("the job did not use NVLS")
	for _, g := range p.graphs {
		if err := p.fill(&g); err != nil {
			return err
		}
		switch {
		case g.Pattern == search.RingPattern:
			p.log.Graphs.Ring = g.Graph
		case g.Pattern == search.NVLSPattern && len(g.Channels) > 0:
			p.log.Graphs.NVLS, p.log.Graphs.NVLSError = g.Graph, nil
		case len(p.log.Graphs.Tree.Channels) == 0 && g.Pattern < search.RingPattern:
			p.log.Graphs.Tree = g.Graph
		}
	}
	if len(p.log.Graphs.Ring.Channels) == 0 || len(p.log.Graphs.Tree.Channels) == 0 {
		return fmt.Errorf("no ring or no tree (Pattern …): want NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING")
	}
	return nil
}

// fill turns the names on a graph's channels into indexes.
func (p *parser) fill(g *graph) error {
	if len(g.ends) < g.channels {
		return fmt.Errorf("a graph of %d channels shows %d of them", g.channels, len(g.ends))
	}
	for _, ends := range g.ends[:g.channels] {
		ch := search.Channel{In: -1, Out: -1}
		for i, end := range ends {
			kind, id, _ := strings.Cut(end, "/")
			id = strings.ToLower(id[strings.Index(id, "-")+1:])
			if kind == "GPU" {
				at := slices.Index(p.system.gpus, id)
				if at < 0 {
					return fmt.Errorf("channel through %s, which the machine does not have", end)
				}
				ch.GPUs = append(ch.GPUs, at)
				continue
			}
			at := slices.Index(p.system.nets, id)
			if at < 0 {
				return fmt.Errorf("channel through %s, which the machine does not have", end)
			}
			if i == 0 {
				ch.In = at
			}
			ch.Out = at
		}
		distinct := slices.Compact(slices.Sorted(slices.Values(ch.GPUs)))
		whole := g.Pattern == search.NVLSPattern || len(ch.GPUs) == p.local
		if len(ch.GPUs) == 0 || len(distinct) != len(ch.GPUs) || !whole || distinct[len(distinct)-1] >= p.local {
			return fmt.Errorf("channel %s: want each of the %d GPUs that take part once", strings.Join(ends, " "), p.local)
		}
		g.Channels = append(g.Channels, ch)
	}
	return nil
}

func number(s string) int {
	n, _ := strconv.Atoi(s) // digits; 0 for too many, which is refused later
	return n
}

func rate(s string) units.Rate {
	v, _ := strconv.ParseFloat(s, 64)
	return units.Rate(v) * units.GBps
}

func pathType(name string) (topo.PathType, bool) {
	for t := topo.PathLOC; t <= topo.PathDIS; t++ {
		if t.String() == name {
			return t, true
		}
	}
	return 0, false
}
