// Package bench measures the kernels of backend/cuda by size, blocks and
// threads, with NCCL on the same GPUs beside them, and checks every rank's
// result.
package bench

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"tutti/backend/cuda"
	"tutti/backend/cuda/driver"
	"tutti/backend/nccl"
	"tutti/model"
	"tutti/model/units"
)

// Row is one measurement of AllReduce.
type Row struct {
	// Series is nccl-default, nccl-symmetric, or an algorithm of package cuda.
	Series   string
	GPUs     int
	Datatype model.Datatype
	Redop    model.Redop
	Bytes    units.Bytes
	Launch   cuda.Launch // zero for NCCL
	// Median, Min and Max are of the replays' times of one call.
	Median, Min, Max time.Duration
	// Wrong counts elements that are off, on all ranks; -1 if not checked.
	Wrong int64
}

var header = []string{"series", "gpus", "datatype", "redop", "bytes", "blocks", "threads", "rounds", "median_us", "min_us", "max_us", "busbw_GBps", "wrong"}

func (r Row) fields() []string {
	us := func(d time.Duration) string { return strconv.FormatFloat(float64(d)/1e3, 'f', 3, 64) }
	bus := float64(r.Bytes) / float64(r.Median) * model.AllReduce.BusFactor(r.GPUs)
	return []string{
		r.Series, strconv.Itoa(r.GPUs), r.Datatype.String(), r.Redop.String(), strconv.FormatInt(int64(r.Bytes), 10),
		strconv.Itoa(r.Launch.Blocks), strconv.Itoa(r.Launch.Threads), strconv.Itoa(r.Launch.Rounds),
		us(r.Median), us(r.Min), us(r.Max), fmt.Sprintf("%.2f", bus), strconv.FormatInt(r.Wrong, 10),
	}
}

// Bench holds the GPUs, communicators and buffers of a run.
type Bench struct {
	gpus    []*driver.GPU
	streams []*driver.Stream
	comm    *cuda.Comm
	peer    *nccl.Comm
	input   []driver.Pointer
	output  []driver.Pointer
	windows *nccl.Buffers
	room    int64
	staging *driver.Host
	begun   bool // the header is written
	out     *csv.Writer
	log     io.Writer
}

// Options say what to run.
type Options struct {
	// GPUs are the devices by index; one may stand for several ranks if there is
	// no peer.
	GPUs []int
	// Room is the largest size.
	Room units.Bytes
	// Peer runs NCCL, too.
	Peer bool
	// Scratch is that of the communicator.
	Scratch units.Bytes
	Timeout time.Duration
}

// Open readies the GPUs. Rows go to out as CSV as they come, notes to log.
func Open(o Options, out, log io.Writer) (b *Bench, err error) {
	b = &Bench{room: int64(o.Room), out: csv.NewWriter(out), log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	opened := map[int]*driver.GPU{}
	for _, index := range o.GPUs {
		g := opened[index]
		if g == nil {
			if g, err = driver.Open(index); err != nil {
				return b, err
			}
			opened[index] = g
		}
		s, err := g.NewStream()
		if err != nil {
			return b, err
		}
		b.gpus, b.streams = append(b.gpus, g), append(b.streams, s)
	}
	if b.comm, err = cuda.New(b.gpus, cuda.Options{Scratch: int64(o.Scratch), Timeout: o.Timeout}); err != nil {
		return b, err
	}
	for _, g := range b.gpus {
		for _, list := range []*[]driver.Pointer{&b.input, &b.output} {
			p, err := g.Alloc(b.room)
			if err != nil {
				return b, err
			}
			*list = append(*list, p)
		}
	}
	if b.staging, err = b.gpus[0].AllocHost(64 << 20); err != nil {
		return b, err
	}
	if o.Peer {
		if b.peer, err = nccl.New(b.gpus); err != nil {
			return b, err
		}
		if b.windows, err = b.peer.Alloc(2*b.room, true); err != nil {
			return b, err
		}
	}
	return b, nil
}

// Close frees everything.
func (b *Bench) Close() error {
	var errs []error
	if b.windows != nil {
		errs = append(errs, b.windows.Free())
	}
	if b.peer != nil {
		errs = append(errs, b.peer.Close())
	}
	if b.comm != nil {
		errs = append(errs, b.comm.Close())
	}
	return errors.Join(errs...)
}

// Case is one collective call to measure.
type Case struct {
	Datatype model.Datatype
	Redop    model.Redop
	Bytes    units.Bytes
	InPlace  bool
}

// Run measures one case with every launch, then NCCL if there is one. A launch
// that does not suit the size is left out with a note.
func (b *Bench) Run(c Case, launches []cuda.Launch) ([]Row, error) {
	t, err := newData(c.Datatype, c.Redop, len(b.gpus), uint64(c.Bytes))
	if err != nil {
		return nil, err
	}
	if !b.begun {
		b.begun = true
		if err := b.out.Write(header); err != nil {
			return nil, err
		}
	}
	if err := b.comm.Prepare(c.Datatype, c.Redop); err != nil {
		return nil, err
	}
	var rows []Row
	keep := func(r Row, err error) error {
		if err != nil {
			fmt.Fprintf(b.log, "left out: %s of %d bytes: %v\n", r.Series, int64(c.Bytes), err)
			return b.comm.Check()
		}
		rows = append(rows, r)
		if err := b.out.Write(r.fields()); err != nil {
			return err
		}
		b.out.Flush()
		return b.out.Error()
	}
	for _, l := range launches {
		r := Row{Series: l.Algorithm.String(), Launch: l}
		call := cuda.Call{Input: b.input, Output: b.output, Count: c.count(), Datatype: c.Datatype, Redop: c.Redop}
		if c.InPlace {
			call.Output = call.Input
		}
		err := b.measure(&r, c, t, call.Input, call.Output, func() error {
			return b.comm.AllReduce(call, l, b.streams)
		})
		if err := keep(r, err); err != nil {
			return rows, err
		}
	}
	if b.peer == nil {
		return rows, nil
	}
	for _, series := range []string{"nccl-default", "nccl-symmetric"} {
		input, output := b.input, b.output
		if series == "nccl-symmetric" {
			input = b.windows.Pointers
			output = make([]driver.Pointer, len(input))
			for i := range output {
				output[i] = input[i] + driver.Pointer(b.room)
			}
		}
		if c.InPlace {
			output = input
		}
		call := nccl.Call{Collective: model.AllReduce, Input: input, Output: output, Count: c.count(), Datatype: c.Datatype, Redop: c.Redop}
		r := Row{Series: series}
		err := b.measure(&r, c, t, input, output, func() error { return b.peer.Queue(call, b.streams) })
		if err := keep(r, err); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func (c Case) count() int64 { return int64(c.Bytes / c.Datatype.Size()) }

// repeats says how often to run a size: longer calls need fewer.
func repeats(bytes units.Bytes) cuda.Repeats {
	switch {
	case bytes <= 64*units.KiB:
		return cuda.Repeats{Calls: 50, Replays: 15}
	case bytes <= 4*units.MiB:
		return cuda.Repeats{Calls: 20, Replays: 11}
	case bytes <= 64*units.MiB:
		return cuda.Repeats{Calls: 6, Replays: 9}
	default:
		return cuda.Repeats{Calls: 3, Replays: 5}
	}
}

// measure checks the result of work on every rank, then times it.
func (b *Bench) measure(r *Row, c Case, t *data, input, output []driver.Pointer, work func() error) error {
	r.GPUs, r.Datatype, r.Redop, r.Bytes = len(b.gpus), c.Datatype, c.Redop, c.Bytes
	if c.InPlace {
		output = input
	}
	if err := b.fill(t, input, c); err != nil { // anew: a call in place spoils it
		return err
	}
	for i, g := range b.gpus {
		if c.InPlace {
			continue
		}
		if err := g.Fill(output[i], 0xff, int64(c.Bytes)); err != nil {
			return err
		}
	}
	if err := work(); err != nil {
		return err
	}
	if err := b.sync(); err != nil {
		return err
	}
	for i, g := range b.gpus {
		wrong, err := t.check(g, output[i], c.count(), b.staging.Data)
		if err != nil {
			return err
		}
		r.Wrong += wrong
	}
	times, err := cuda.Measure(b.streams, repeats(c.Bytes), work)
	if err == nil {
		err = b.faults()
	}
	if err != nil {
		return err
	}
	r.Median, r.Min, r.Max = cuda.Median(times), times[0], times[len(times)-1]
	return nil
}

// faults returns what the kernels had to report, and makes the communicator
// usable again.
func (b *Bench) faults() error {
	err := b.comm.Check()
	if err != nil {
		err = errors.Join(err, b.comm.Reset())
	}
	return err
}

func (b *Bench) fill(t *data, to []driver.Pointer, c Case) error {
	for i, s := range b.streams {
		if err := t.fill(s, i, to[i], int64(c.Bytes)); err != nil {
			return err
		}
	}
	return nil
}
