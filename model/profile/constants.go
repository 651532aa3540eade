package profile

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tutti/model"
	"tutti/model/units"
	"tutti/topo"
)

// field is one constant of a profile: its place in a file and in the struct.
type field struct {
	// path is where a file has it: keys, with dots between.
	path string
	unit unit
	// get and set convert from and to the file's unit.
	get func(*Profile) float64
	set func(*Profile, float64)
}

// unit is that of a value in a file.
type unit string

const (
	microseconds unit = "us"
	gigabytes    unit = "GB/s"
	megabytes    unit = "MB"
	share        unit = ""        // a number above 0, at most 1
	count        unit = "buffers" // from 0
)

// fields lists every constant of a profile, in the order of the files.
var fields = func() (list []field) {
	time := func(path string, at func(*Profile) *units.Time) {
		list = append(list, field{path, microseconds,
			func(p *Profile) float64 { return at(p).Microseconds() },
			func(p *Profile, us float64) { *at(p) = units.FromMicroseconds(us) }})
	}
	rate := func(path string, at func(*Profile) *units.Rate) {
		list = append(list, field{path, gigabytes,
			func(p *Profile) float64 { return float64(*at(p) / units.GBps) },
			func(p *Profile, v float64) { *at(p) = units.Rate(v) * units.GBps }})
	}
	each := func(path string, at func(*Profile) *[algorithms][protocols]units.Time) {
		for a := range known {
			for _, q := range model.Algorithm(a).Protocols() {
				time(fmt.Sprintf("%s.%v.%v", path, model.Algorithm(a), q), func(p *Profile) *units.Time { return &at(p)[a][q] })
			}
		}
	}
	each("base", func(p *Profile) *[algorithms][protocols]units.Time { return &p.Base })
	for _, q := range model.Protocols() {
		time("overhead."+q.String(), func(p *Profile) *units.Time { return &p.Overhead[q] })
	}
	each("turn", func(p *Profile) *[algorithms][protocols]units.Time { return &p.Turn })
	each("ramp", func(p *Profile) *[algorithms][protocols]units.Time { return &p.Ramp })
	for h, name := range hopNames {
		each("handover."+name, func(p *Profile) *[algorithms][protocols]units.Time { return &p.Handover[h] })
	}
	for a := range known {
		for _, q := range model.Algorithm(a).Protocols() {
			rate(fmt.Sprintf("copy.%v.%v", model.Algorithm(a), q), func(p *Profile) *units.Rate { return &p.Copy[a][q] })
		}
	}
	for a := range known {
		for _, q := range model.Algorithm(a).Protocols() {
			list = append(list, field{fmt.Sprintf("miss.%v.%v", model.Algorithm(a), q), count,
				func(p *Profile) float64 { return p.Miss[a][q] },
				func(p *Profile, n float64) { p.Miss[a][q] = n }})
		}
	}
	list = append(list, field{"cache", megabytes,
		func(p *Profile) float64 { return float64(p.Cache) / 1e6 },
		func(p *Profile, mb float64) { p.Cache = units.Bytes(math.Round(mb * 1e6)) }})
	rate("copy.local", func(p *Profile) *units.Rate { return &p.LocalCopy })
	for name, link := range linkNames() {
		list = append(list, field{"latency." + name, microseconds,
			func(p *Profile) float64 { return p.Latency[link].Microseconds() },
			func(p *Profile, us float64) { p.Latency[link] = units.FromMicroseconds(us) }})
	}
	for name, link := range linkNames() {
		list = append(list, field{"efficiency." + name, share,
			func(p *Profile) float64 { return p.Efficiency[link] },
			func(p *Profile, v float64) { p.Efficiency[link] = v }})
	}
	list = append(list, field{"efficiency.multimem", share,
		func(p *Profile) float64 { return p.Multimem },
		func(p *Profile, v float64) { p.Multimem = v }})
	for i, k := range Kernels {
		path := fmt.Sprintf("kernel.%v.%s", k.Collective, k.Name)
		time(path+".base", func(p *Profile) *units.Time { return &p.Kernel[i].Base })
		rate(path+".rate", func(p *Profile) *units.Rate { return &p.Kernel[i].Rate })
	}
	time("message.proxy", func(p *Profile) *units.Time { return &p.Message[ByProxy] })
	time("message.gpu", func(p *Profile) *units.Time { return &p.Message[ByGPU] })
	rate("queuepair", func(p *Profile) *units.Rate { return &p.QueuePair })
	return list
}()

// optional tells whether a profile may leave the constant out: it is 0 then.
func (f field) optional() bool {
	return f.path == "queuepair" || f.path == "cache" || strings.HasPrefix(f.path, "message.") || strings.HasPrefix(f.path, "miss.") || strings.HasPrefix(f.path, "kernel.")
}

// index returns the place of a constant in fields, or -1.
func index(path string) int {
	return slices.IndexFunc(fields, func(f field) bool { return f.path == path })
}

// linkNames goes through the names of the types of links, in order.
func linkNames() func(yield func(string, topo.LinkType) bool) {
	return func(yield func(string, topo.LinkType) bool) {
		for _, l := range []topo.LinkType{topo.LinkNVL, topo.LinkC2C, topo.LinkPCI, topo.LinkSYS, topo.LinkNET} {
			if !yield(strings.ToLower(l.String()), l) {
				return
			}
		}
	}
}

// valueForm is a number, or a ratio of two that shows where it comes from, and
// its unit.
var valueForm = regexp.MustCompile(`^(\d+(?:\.\d+)?)(?:/(\d+(?:\.\d+)?))?(?: (us|GB/s|MB|buffers))?$`)

// parse reads a value with its unit, as in "3.4 us", "9 GB/s" or "361.2/370.8".
func (u unit) parse(s string) (float64, error) {
	want := map[unit]string{microseconds: "a time in us from 0 up, such as 3.4 us", gigabytes: "a rate in GB/s above 0, such as 38.7 GB/s", megabytes: "a size in MB above 0, such as 31.5 MB", count: "a number from 0, such as 1.5 buffers", share: "a share above 0 and at most 1, such as 0.97 or 361.2/370.8"}[u]
	form := valueForm.FindStringSubmatch(s)
	if form == nil || unit(form[3]) != u {
		return 0, fmt.Errorf("%q: want %s", s, want)
	}
	v, err := strconv.ParseFloat(form[1], 64)
	if form[2] != "" {
		below, _ := strconv.ParseFloat(form[2], 64)
		v /= below
	}
	if err != nil || math.IsNaN(v) || v > 1e9 || (u == share && v > 1) || (u != microseconds && u != count && v < 1e-5) {
		return 0, fmt.Errorf("%q: want %s", s, want)
	}
	return v, nil
}

// format writes a value as parse reads it.
func (u unit) format(v float64) string {
	return strings.TrimSpace(strconv.FormatFloat(v, 'f', -1, 64) + " " + string(u))
}
