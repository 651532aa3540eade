package units

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

var (
	rateForm = regexp.MustCompile(`^(\d*\.?\d+) *([kMGT]?)(b/s|bps|bit/s|B/s)$`)
	timeForm = regexp.MustCompile(`^(\d*\.?\d+) *(ps|ns|us|µs|ms|s)$`)

	multiples = map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
	durations = map[string]Time{"ps": Picosecond, "ns": Nanosecond, "us": Microsecond, "µs": Microsecond, "ms": Millisecond, "s": Second}
)

// ParseRate reads a rate with its unit, in bits ("400 Gb/s", "400Gbps") or in
// bytes ("50 GB/s"), with decimal multiples. It fails for anything else.
func ParseRate(s string) (Rate, error) {
	form := rateForm.FindStringSubmatch(s)
	if form == nil {
		return 0, fmt.Errorf("%q is not a rate: want a number with its unit, such as 400 Gb/s or 50 GB/s", s)
	}
	value, _ := strconv.ParseFloat(form[1], 64) // infinite when out of range
	value *= multiples[form[2]]
	if form[3] != "B/s" {
		value /= 8
	}
	if math.IsInf(value, 0) {
		return 0, fmt.Errorf("rate %q is out of range", s)
	}
	return Rate(value), nil
}

// ParseTime reads a duration with its unit: "250 ns", "1.5us". It fails for
// anything else.
func ParseTime(s string) (Time, error) {
	form := timeForm.FindStringSubmatch(s)
	if form == nil {
		return 0, fmt.Errorf("%q is not a time: want a number with its unit, such as 250 ns or 1.5 us", s)
	}
	value, _ := strconv.ParseFloat(form[1], 64) // infinite when out of range
	value = math.Round(value * float64(durations[form[2]]))
	if value >= math.MaxInt64 {
		return 0, fmt.Errorf("time %q is out of range", s)
	}
	return Time(value), nil
}
