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

// Kernels lists the kernels that profiles may have constants of.
var Kernels = []Kernel{
	{model.AllReduce, model.OneShot, model.LL, "oneshot_ll"},
	{model.AllReduce, model.OneShot, model.LL128, "oneshot_ll128"},
	{model.AllReduce, model.TwoShot, model.LL128, "twoshot_ll128"},
	{model.AllReduce, model.TwoShot, model.Simple, "twoshot_push"},
	{model.AllReduce, model.TwoShot, model.Simple, "hybrid"},
}

// Sent returns the bytes that each GPU sends in a call of the given size: to each
// of the others all of it in one shot, their shares twice in two.
func (k Kernel) Sent(ranks int, size units.Bytes) float64 {
	sent := float64(size) * float64(ranks-1)
	if k.Algorithm == model.TwoShot {
		sent *= 2 / float64(ranks)
	}
	return sent
}

// KernelCost is what a kernel takes: Base, and what each GPU sends at Rate. Zero
// where nothing is known.
type KernelCost struct {
	Base units.Time
	Rate units.Rate
}

// Time returns what a call takes, in microseconds, in all and for sending.
func (c KernelCost) Time(sent float64) (whole, sending float64) {
	sending = sent / float64(c.Rate) * 1e6
	return c.Base.Microseconds() + sending, sending
}
