package profile

import (
	"tutti/model"
	"tutti/model/units"
)

// Kernel is one of tutti's own GPU kernels (package backend/cuda) that carries
// out a collective on the GPUs of one NVSwitch host.
type Kernel struct {
	Collective model.Collective
	Algorithm  model.Algorithm
	Protocol   model.Protocol
	// Name is that of the kernel where it runs.
	Name string
}

// Kernels lists the kernels that profiles may have constants of: those that tutti
// chooses for some size, by collective.
var Kernels = [kernels]Kernel{
	{model.AllReduce, model.OneShot, model.LL, "oneshot_ll"},
	{model.AllReduce, model.OneShot, model.LL128, "oneshot_ll128"},
	{model.AllReduce, model.TwoShot, model.LL128, "twoshot_ll128"},
	{model.AllReduce, model.TwoShot, model.Simple, "twoshot_push"},
	{model.AllReduce, model.TwoShot, model.Simple, "hybrid_push"},
	{model.AllReduce, model.TwoShot, model.Simple, "hybrid"},
	{model.AllGather, model.OneShot, model.LL, "oneshot_ll"},
	{model.AllGather, model.OneShot, model.LL128, "oneshot_ll128"},
	{model.AllGather, model.OneShot, model.Simple, "oneshot_push"},
	{model.AllGather, model.OneShot, model.Simple, "oneshot_copy"},
	{model.ReduceScatter, model.OneShot, model.LL, "oneshot_ll"},
	{model.ReduceScatter, model.OneShot, model.LL128, "oneshot_ll128"},
	{model.ReduceScatter, model.OneShot, model.Simple, "oneshot_push"},
	{model.ReduceScatter, model.OneShot, model.Simple, "oneshot_copy"},
	{model.Broadcast, model.OneShot, model.LL, "oneshot_ll"},
	{model.Broadcast, model.OneShot, model.LL128, "oneshot_ll128"},
	{model.Broadcast, model.OneShot, model.Simple, "oneshot_copy"},
	{model.Broadcast, model.TwoShot, model.LL128, "twoshot_ll128"},
	{model.Broadcast, model.Ring, model.Simple, "ring_push"},
	{model.Reduce, model.OneShot, model.LL, "oneshot_ll"},
	{model.Reduce, model.OneShot, model.LL128, "oneshot_ll128"},
	{model.Reduce, model.OneShot, model.Simple, "oneshot_pull"},
	{model.Reduce, model.TwoShot, model.LL128, "twoshot_ll128"},
	{model.Reduce, model.Ring, model.Simple, "ring_push"},
	{model.AllToAll, model.OneShot, model.LL, "oneshot_ll"},
	{model.AllToAll, model.OneShot, model.LL128, "oneshot_ll128"},
	{model.AllToAll, model.OneShot, model.Simple, "oneshot_push"},
	{model.AllToAll, model.OneShot, model.Simple, "oneshot_copy"},
	{model.SendRecv, model.OneShot, model.LL, "oneshot_ll"},
	{model.SendRecv, model.OneShot, model.LL128, "oneshot_ll128"},
	{model.SendRecv, model.OneShot, model.Simple, "oneshot_push"},
	{model.SendRecv, model.OneShot, model.Simple, "oneshot_copy"},
}

// Suits tells whether the kernel is one for so many ranks: in a Broadcast or Reduce
// on two, all hops but the first are empty.
func (k Kernel) Suits(ranks int) bool {
	return ranks > 2 || !k.Collective.Rooted() || k.Algorithm == model.OneShot
}

// Sent returns the bytes that the busiest link of a GPU carries in a call of the
// given size: those that count for bus bandwidth or, where in one shot all goes to
// each of the others or comes from each, these.
func (k Kernel) Sent(ranks int, size units.Bytes) float64 {
	if k.Algorithm == model.OneShot && (k.Collective == model.AllReduce || k.Collective.Rooted()) {
		return float64(size) * float64(ranks-1)
	}
	return float64(size) * k.Collective.BusFactor(ranks)
}

// KernelCost is what a kernel takes: Base, and what the busiest link carries at Rate.
// Zero where nothing is known.
type KernelCost struct {
	Base units.Time
	Rate units.Rate
}

// Time returns what a call takes, in microseconds, in all and for sending.
func (c KernelCost) Time(sent float64) (whole, sending float64) {
	sending = sent / float64(c.Rate) * 1e6
	return c.Base.Microseconds() + sending, sending
}
