package profile

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/optimize"
)

// least stands for nothing where a constant is fitted, in the file's unit: the
// fit goes through logarithms, so that no constant can become negative.
const least = 1e-3

// prior is how much it costs to move a constant by a factor of e from where it
// started, against an error of a whole measured time: it keeps what the rows say
// nothing about where it was.
const prior = .001

// odd is the error from which on a row does not lead any more.
const odd = .2

// steep says how much more than by its square a large error counts: twice as
// much at 2 %.
const steep = 2000

// starts is how many points around the profile the fit begins from, as valleys
// that explain the rows in different ways lie side by side.
const starts = 5

// Fit changes the named constants of a profile so that errors become small. The
// function errors returns, for a profile, the logarithm of predicted over
// measured time for each row. Large errors count by more than their square, as
// the worst row matters, but odd rows do not lead. It fails for a constant that is
// not known and where errors are not numbers.
//
// The method is Nelder and Mead's, from several points, and begun anew from the
// best with first steps of other sizes until that helps no more.
func Fit(p *Profile, names []string, errors func(*Profile) []float64) (*Profile, error) {
	chosen := make([]*field, len(names))
	start := make([]float64, len(names))
	for i, name := range names {
		at := index(name)
		if at < 0 {
			return nil, fmt.Errorf("fit: unknown constant %s", name)
		}
		chosen[i] = &fields[at]
		start[i] = math.Log(max(least, chosen[i].get(p)))
	}
	at := func(x []float64) *Profile {
		q := p.clone()
		for i, f := range chosen {
			v := math.Exp(x[i])
			if v <= least {
				v = least
			}
			if f.unit == share {
				v = min(1, v)
			}
			f.set(q, v)
		}
		return q
	}
	cost := func(x []float64) float64 {
		sum := 0.0
		for _, e := range errors(at(x)) {
			e = min(math.Abs(e), odd)
			square := e * e
			sum += square + float64(steep*square*square)
		}
		for i := range x {
			d := x[i] - start[i]
			sum += prior * d * d
		}
		return sum
	}
	best, least := slices.Clone(start), cost(start)
	if math.IsNaN(least) || math.IsInf(least, 0) {
		return nil, fmt.Errorf("fit: some errors are not numbers before anything is changed")
	}
	search := func(from []float64, size float64) (better bool, err error) {
		settings := &optimize.Settings{FuncEvaluations: 200 * len(names), Converger: &optimize.FunctionConverge{Absolute: 1e-6, Iterations: 40 * len(names)}}
		result, err := optimize.Minimize(optimize.Problem{Func: cost}, from, settings, &optimize.NelderMead{SimplexSize: size})
		if result == nil {
			return false, fmt.Errorf("fit: %w", err)
		}
		if better = result.F < least*(1-1e-3); better {
			best, least = result.X, result.F
		}
		return better, nil
	}
	random := rand.New(rand.NewPCG(1, 1)) // the same from run to run
	for range starts {
		from := slices.Clone(start)
		for i := range from {
			from[i] += 2*random.Float64() - 1
		}
		if _, err := search(from, .5); err != nil {
			return nil, err
		}
	}
	for better := true; better; {
		better = false
		for _, size := range []float64{.3, 1, .1} {
			found, err := search(best, size)
			if err != nil {
				return nil, err
			}
			better = better || found
		}
	}
	return at(best), nil
}

// With returns a copy with the named constants of another profile.
func (p *Profile) With(from *Profile, names []string) *Profile {
	q := p.clone()
	for _, name := range names {
		f := &fields[index(name)]
		f.set(q, f.get(from))
	}
	return q
}

// Set returns a copy with another value of a constant, in the unit of the files.
// It fails for a name that is not known.
func (p *Profile) Set(name string, v float64) (*Profile, error) {
	i := index(name)
	if i < 0 {
		return nil, fmt.Errorf("unknown constant %s", name)
	}
	q := p.clone()
	fields[i].set(q, v)
	return q, nil
}

// clone returns a copy that can be changed.
func (p *Profile) clone() *Profile {
	q := *p
	q.Latency, q.Efficiency = maps.Clone(p.Latency), maps.Clone(p.Efficiency)
	return &q
}

// Value returns a constant by its name, in the unit of the files; ok is false
// for a name that is not known.
func (p *Profile) Value(name string) (v float64, ok bool) {
	i := index(name)
	if i < 0 {
		return 0, false
	}
	return fields[i].get(p), true
}
