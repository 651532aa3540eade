package calibrate

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"tutti/model/profile"
	"tutti/model/units"
	"tutti/topo"
)

// probeHeader are the columns that tutti run --probe writes: what each of so many GPUs sends
// to each of so many peers, within the time, and in all by the second.
var probeHeader = []string{"engine", "gpus", "peers", "bytes_per_peer", "blocks", "threads", "tile", "lanes", "pull", "eager", "time_us", "GBps"}

// The columns that are read.
const (
	probeEngine = 0
	probeGPUs   = 1
	probePeers  = 2
	probeTime   = 10
	probeRate   = 11
)

// Probe is what tutti run --probe found of the wires between a machine's GPUs.
type Probe struct {
	// GPUs were probed at a time.
	GPUs int
	// Flag is the median time until a GPU sees what another has stored.
	Flag units.Time
	// ToOne and ToAll are the highest rates at which each GPU stored to one other
	// and to all others, CopyToOne that of its copy engines.
	ToOne, ToAll, CopyToOne units.Rate
}

// ReadProbe reads the rows of tutti run --probe. An error names the file, given as
// name, and the line: columns of another kind, a number out of its range, rows
// of several machines; or what no row tells of.
func ReadProbe(r io.Reader, name string) (Probe, error) {
	in := csv.NewReader(r)
	in.Comment = '#'
	first, err := in.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return Probe{}, fmt.Errorf("%s: %w", name, err)
	}
	if !slices.Equal(first, probeHeader) {
		return Probe{}, fmt.Errorf("%s: columns %q: want those of tutti run --probe: %s", name, strings.Join(first, ","), strings.Join(probeHeader, ","))
	}
	var p Probe
	var flags []float64
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Probe{}, fmt.Errorf("%s: %w", name, err)
		}
		line, _ := in.FieldPos(0)
		gpus, err1 := strconv.Atoi(row[probeGPUs])
		peers, err2 := strconv.Atoi(row[probePeers])
		if err1 != nil || err2 != nil || peers < 1 || peers >= gpus {
			return Probe{}, fmt.Errorf("%s:%d: %s gpus and %s peers: want fewer peers than gpus, and at least one", name, line, row[probeGPUs], row[probePeers])
		}
		var values [2]float64
		for i, column := range []int{probeTime, probeRate} {
			values[i], err = strconv.ParseFloat(row[column], 64)
			if err != nil || !(values[i] > 0) || math.IsInf(values[i], 0) {
				return Probe{}, fmt.Errorf("%s:%d: %s is %q: want a number above 0", name, line, probeHeader[column], row[column])
			}
		}
		if p.GPUs > 0 && p.GPUs != gpus {
			return Probe{}, fmt.Errorf("%s:%d: %d GPUs, and %d above: want the rows of one run", name, line, gpus, p.GPUs)
		}
		p.GPUs = gpus
		rate := units.Rate(values[1]) * units.GBps
		switch row[probeEngine] {
		case "flag":
			flags = append(flags, values[0])
		case "store":
			if peers == 1 {
				p.ToOne = max(p.ToOne, rate)
			}
			if peers == gpus-1 {
				p.ToAll = max(p.ToAll, rate)
			}
		case "copy":
			if peers == 1 {
				p.CopyToOne = max(p.CopyToOne, rate)
			}
		case "load", "bulk":
		default:
			return Probe{}, fmt.Errorf("%s:%d: unknown engine %q: want flag, store, load, bulk or copy", name, line, row[probeEngine])
		}
	}
	if len(flags) == 0 || p.ToOne == 0 || p.CopyToOne == 0 {
		return Probe{}, fmt.Errorf("%s: cut short: want rows of flag, and of store and copy to one peer", name)
	}
	slices.Sort(flags)
	p.Flag = units.FromMicroseconds(flags[len(flags)/2])
	return p, nil
}

// Constants returns a profile with what the probe tells of a machine, and the
// names of those constants: the latency and the efficiency of NVLink, and the
// rates of tutti's own kernels that are held up by it. It fails for a machine
// that the probe cannot be of.
func (p Probe) Constants(machine *topo.System, start *profile.Profile) (*profile.Profile, []string, error) {
	c, err := topo.NewCluster(machine, 1, p.GPUs, topo.RailOptimised)
	if err != nil {
		return nil, nil, err
	}
	route := c.Route(0, 1, -1, -1)
	slowest := units.Rate(math.Inf(1))
	for _, link := range route {
		kind, rate := c.Link(link)
		if kind != topo.LinkNVL {
			return nil, nil, fmt.Errorf("the GPUs of %s are joined by %v: want the probe's own machine, with NVLink", machine.Name, kind)
		}
		slowest = min(slowest, rate)
	}
	if p.ToOne > slowest {
		return nil, nil, fmt.Errorf("%.1f GB/s to one GPU, and a link of %s carries %.1f: want the probe's own machine", float64(p.ToOne/units.GBps), machine.Name, float64(slowest/units.GBps))
	}
	found := []struct {
		name  string
		value float64
	}{
		{"latency.nvl", p.Flag.Microseconds() / float64(len(route))},
		{"efficiency.nvl", float64(p.ToOne / slowest)},
		{"kernel.allreduce.twoshot_push.rate", float64(p.ToAll / units.GBps)},
		{"kernel.allreduce.hybrid.rate", float64(p.CopyToOne / units.GBps)},
	}
	names := make([]string, len(found))
	for i, f := range found {
		names[i] = f.name
		if start, err = start.Set(f.name, f.value); err != nil {
			return nil, nil, err
		}
	}
	return start, names, nil
}
