// Package rows is the one schema in which results are kept, whether simulated,
// predicted, measured or imported, so that any two can be laid side by side.
// It reads and writes them as CSV and writes them as JSON and as the table of
// nccl-tests.
//
// The CSV's header is
//
//	source,machine,collective,algorithm,protocol,nodes,ranks,channels,datatype,redop,bytes,time_us,algbw_GBps,busbw_GBps
//
// where source is model, sim, host, cuda, nccl or a file's name, bytes is the
// size of each rank's buffer, and GB are 1e9 bytes. Further columns may follow;
// results on real data have
//
//	inplace,wrong
//
// 1 where input and output overlap, and the number of elements, of all ranks,
// that differ from a reference: empty where nobody looked. Those of tutti's own
// kernels on GPUs have
//
//	kernel
//
// too, which has a block for each channel.
package rows

import (
	"slices"

	"tutti/model"
	"tutti/model/units"
)

// Row is one result.
type Row struct {
	// Source says what the time comes from: sim, nccl, …
	Source     string
	Machine    string
	Collective model.Collective
	Algorithm  model.Algorithm
	Protocol   model.Protocol
	// Nodes and Ranks are the size of the communicator.
	Nodes, Ranks int
	Channels     int
	Datatype     model.Datatype
	Redop        model.Redop
	// Bytes is the size of each rank's buffer.
	Bytes units.Bytes
	Time  units.Time
	// InPlace and Wrong tell of a run on real data: whether input and output
	// overlap, and how many elements differ from a reference, nil where nobody
	// looked.
	InPlace bool
	Wrong   *int64
	// Kernel is tutti's on GPUs that carried the call out, if one of those did.
	Kernel string
	// Why tells of a simulation what the time comes from.
	Why *Why
	// Case is the place of the row in a study that ran in several parts; zero for
	// others.
	Case Case
}

// Case numbers one of a study's cases.
type Case struct {
	// Study tells studies apart.
	Study string
	// Number counts from 1 to Of.
	Number, Of int
}

// Why is what a simulation knows beside its time.
type Why struct {
	// Fabric joins the machines; empty within one.
	Fabric string
	// Bound is a time that no algorithm beats.
	Bound units.Time
	// Bottleneck names the link or the threads that were busy longest, and Share
	// is for which part of the time; latency, if nothing was for half of it.
	Bottleneck string
	Share      float64
	// Workers is how many were simulated, each for all that do the same, Of how
	// many there are.
	Workers, Of int
	// Spread is nil where one time is all there is.
	Spread *Spread
}

// Spread is that of the times of one case with several seeds, of which the
// row's time is the median.
type Spread struct {
	Seeds           int
	Least, Greatest units.Time
}

// spread returns it, or nil.
func (r Row) spread() *Spread {
	if r.Why == nil {
		return nil
	}
	return r.Why.Spread
}

// spreads tells whether any row has a spread.
func spreads(rows []Row) bool {
	return slices.ContainsFunc(rows, func(r Row) bool { return r.spread() != nil })
}

// AlgBW returns algorithm bandwidth: bytes over time.
func (r Row) AlgBW() units.Rate { return r.Bytes.Over(r.Time) }

// BusBW returns bus bandwidth: algorithm bandwidth times the collective's
// factor, which compares with the hardware's.
func (r Row) BusBW() units.Rate {
	return r.AlgBW() * units.Rate(r.Collective.BusFactor(r.Ranks))
}

// Count returns the number of elements.
func (r Row) Count() int64 { return int64(r.Bytes / r.Datatype.Size()) }
