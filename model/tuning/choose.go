package tuning

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/tuning/nccl"
	"tutti/model/units"
)

// Way is an algorithm over a protocol, as NCCL's kernels and the interpreter go
// it or, where it is named, as one of tutti's own kernels does.
type Way struct {
	Algorithm model.Algorithm
	Protocol  model.Protocol
	Kernel    string
}

func (w Way) String() string {
	if w.Kernel != "" {
		return "tutti/" + w.Kernel
	}
	return fmt.Sprintf("%v/%v", w.Algorithm, w.Protocol)
}

// Choice is a way, on so many channels, and what it is predicted to take.
type Choice struct {
	Way
	Channels int
	Prediction
}

// Only returns the model with some algorithms alone to choose from, and none of
// tutti's own kernels.
func (d *Predictor) Only(algorithms []model.Algorithm) *Predictor {
	c := *d
	c.algorithms, c.kernels = algorithms, false
	return &c
}

// Choices predicts a task by every way that the cluster can go, the fastest
// first. NCCL's rules say how many channels each has, and which of its own are not
// to be had: LL128 needs paths that keep 128 bytes whole. It fails when there is
// no way.
func (d *Predictor) Choices(t schedule.Task, m *Model) ([]Choice, error) {
	if d.ranks == 1 {
		return nil, errSingle
	}
	var list []Choice
	var last error
	for _, a := range d.algorithms {
		_, known := nccl.Of(a)
		rules := m
		if a == model.Tree && t.Collective.Rooted() { // which NCCL does not have
			rules = m.On(model.AllReduce)
		}
		for _, p := range a.Protocols() {
			if known && rules.Cost(a, p) == (Cost{}) {
				continue
			}
			t.Algorithm, t.Protocol = a, p
			t.Channels = m.Channels(a, p, t.Bytes())
			predicted, err := d.Predict(t)
			if err != nil {
				last = err
				continue
			}
			list = append(list, Choice{Way{Algorithm: a, Protocol: p}, t.Channels, predicted})
		}
	}
	list = append(list, d.kernelChoices(t)...)
	if len(list) == 0 {
		return nil, cmp.Or(last, fmt.Errorf("no way to carry out %v on %d ranks", t.Collective, d.ranks))
	}
	slices.SortStableFunc(list, func(a, b Choice) int {
		switch {
		case a.Time < b.Time:
			return -1
		case a.Time > b.Time:
			return 1
		default:
			return 0
		}
	})
	return list, nil
}

// mostRanks is how many GPUs tutti's own kernels join.
const mostRanks = 8

// kernelTypes are those that tutti's own kernels are built for.
var kernelTypes = []model.Datatype{model.Float32, model.Float64, model.Float16, model.BFloat16, model.Int32, model.Int64}

// kernelChoices predicts a task by tutti's own kernels, as far as the profile has
// constants of them. Their blocks stand in the place of channels where they are
// chosen for a run, and are not told here.
func (d *Predictor) kernelChoices(t schedule.Task) (list []Choice) {
	if !d.kernels || d.nodes > 1 || d.ranks > mostRanks || !slices.Contains(kernelTypes, t.Datatype) {
		return nil
	}
	for i, k := range profile.Kernels {
		if k.Collective == t.Collective && k.Suits(d.ranks) && d.profile.Kernel[i].Rate > 0 {
			list = append(list, Choice{Way{k.Algorithm, k.Protocol, k.Name}, 0, d.byKernel(i, t.Bytes())})
		}
	}
	return list
}

// byKernel predicts a call by the i-th of [profile.Kernels].
func (d *Predictor) byKernel(i int, size units.Bytes) Prediction {
	whole, sending := d.profile.Kernel[i].Time(profile.Kernels[i].Sent(d.ranks, size))
	return Prediction{Time: whole, terms: [4]float64{whole - sending, 0, 0, sending}, limit: "what the busiest link carries", whole: true}
}

// PredictKernel predicts a task by one of tutti's own kernels. It fails for one that
// the profile has no constants of.
func (d *Predictor) PredictKernel(name string, t schedule.Task) (Prediction, error) {
	i := slices.IndexFunc(profile.Kernels[:], func(k profile.Kernel) bool { return k.Collective == t.Collective && k.Name == name })
	if i < 0 || d.profile.Kernel[i].Rate == 0 {
		return Prediction{}, fmt.Errorf("profile %s has no constants of the kernel %s for %v", d.profile.Name, name, t.Collective)
	}
	return d.byKernel(i, t.Bytes()), nil
}

// Range is a run of sizes that one way wins.
type Range struct {
	// Best is the choice at the smallest size.
	Best Choice
	// From and To are the smallest and the largest size that it wins.
	From, To units.Bytes
}

// Ranges goes from one size to another and finds, to the element, where another
// way begins to win. Between the powers of two that it tries it takes the order
// of the two ways to change once.
func (d *Predictor) Ranges(t schedule.Task, m *Model, from, to units.Bytes) ([]Range, error) {
	bytes := func(count int64) units.Bytes {
		t.Count = count
		return t.Bytes()
	}
	each := bytes(1)
	best := func(n int64) (Choice, error) {
		t.Count = n
		all, err := d.Choices(t, m)
		if err != nil {
			return Choice{}, err
		}
		return all[0], nil
	}
	n, end := int64(max(1, from/each)), int64(max(1, to/each))
	now, err := best(n)
	if err != nil {
		return nil, err
	}
	list := []Range{{now, bytes(n), bytes(n)}}
	for n < end {
		next := min(end, 2*n)
		for lo := n; lo < next; {
			at, err := best(next)
			if err != nil {
				return nil, err
			}
			last := &list[len(list)-1]
			if at.Way == last.Best.Way {
				last.To, lo = bytes(next), next
				continue
			}
			// The last size of the way before, and the first of the one after.
			hi := next
			for hi-lo > 1 {
				middle := lo + (hi-lo)/2
				c, err := best(middle)
				if err != nil {
					return nil, err
				}
				if c.Way == last.Best.Way {
					lo = middle
				} else {
					hi = middle
				}
			}
			last.To = bytes(lo)
			c, err := best(hi)
			if err != nil {
				return nil, err
			}
			list = append(list, Range{c, bytes(hi), bytes(hi)})
			lo = hi
		}
		n = next
	}
	return list, nil
}

// Loss returns how much longer than the best a way takes, as a share; +Inf where
// the way cannot be gone.
func Loss(choices []Choice, w Way) float64 {
	for _, c := range choices {
		if c.Way == w {
			return c.Time/choices[0].Time - 1
		}
	}
	return math.Inf(1)
}
