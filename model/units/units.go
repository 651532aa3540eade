// Package units holds the three quantities that every other package measures
// in: [Bytes], [Rate] and [Time]. Each is a named type, so that a size is
// never added to a time by accident, and the constants multiply as one writes
// them: 400*units.Gbps, 3*units.Microsecond, 4*units.MiB.
//
// Time is an integer, so that equal instants computed in two ways are equal,
// and a simulation prints the same bytes on every machine.
package units

import (
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
)

// Bytes is an amount of data.
type Bytes int64

// Binary multiples, as nccl-tests writes them: 1K is 1024 bytes.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

const letters = "KMGT" // the n-th stands for 1024^n

// String writes b in the largest binary unit that divides it: "64 MiB", "1000 B".
func (b Bytes) String() string {
	for i := len(letters); i > 0; i-- {
		if size := Bytes(1) << (10 * i); b != 0 && b%size == 0 {
			return fmt.Sprintf("%d %ciB", b/size, letters[i-1])
		}
	}
	return fmt.Sprintf("%d B", int64(b))
}

var sizeForm = regexp.MustCompile(`(?i)^(\d*\.?\d+) *(?:([KMGT])(?:iB)?|B?)$`)

// ParseBytes reads a size as nccl-tests does: a number and an optional K, M, G
// or T, all powers of 1024 ("8", "64K", "1.5M"); "KiB" may be written for "K".
// It fails for anything else, for negative sizes, and for fractions of a byte.
func ParseBytes(s string) (Bytes, error) {
	form := sizeForm.FindStringSubmatch(s)
	if form == nil {
		return 0, fmt.Errorf("%q is not a size: want a number of bytes, or one with K, M, G or T (powers of 1024), such as 64M", s)
	}
	total, _ := strconv.ParseFloat(form[1], 64) // infinite when out of range
	if form[2] != "" {
		total *= float64(Bytes(1) << (10 * (strings.Index(letters, strings.ToUpper(form[2])) + 1)))
	}
	switch {
	case total >= 1<<62:
		return 0, fmt.Errorf("size %q is out of range: want less than 2^62 bytes", s)
	case total != math.Trunc(total):
		return 0, fmt.Errorf("size %q is not a whole number of bytes", s)
	}
	return Bytes(total), nil
}

// Rate is a bandwidth in bytes per second.
type Rate float64

// Decimal rates: vendors' GB/s are 1e9 bytes, and a network's Gb/s are 1e9 bits.
const (
	MBps Rate = 1e6
	GBps Rate = 1e9
	Mbps Rate = 1e6 / 8
	Gbps Rate = 1e9 / 8
)

// String writes r in GB/s with one decimal, as NCCL prints bandwidths.
func (r Rate) String() string { return fmt.Sprintf("%.1f GB/s", float64(r/GBps)) }

// Time is a count of picoseconds: an instant after a start, or a duration.
// It reaches 106 days.
type Time int64

// Durations.
const (
	Picosecond  Time = 1
	Nanosecond  Time = 1e3
	Microsecond Time = 1e6
	Millisecond Time = 1e9
	Second      Time = 1e12
)

// Microseconds returns t in microseconds, the unit of every table.
func (t Time) Microseconds() float64 { return float64(t) / float64(Microsecond) }

// Seconds returns t in seconds.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

// String writes t in microseconds.
func (t Time) String() string { return fmt.Sprintf("%.3f us", t.Microseconds()) }

// FromMicroseconds returns the time nearest to us microseconds.
func FromMicroseconds(us float64) Time { return Time(math.Round(us * float64(Microsecond))) }

// Over returns the rate that moves b in t; 0 when t is 0.
func (b Bytes) Over(t Time) Rate {
	if t == 0 {
		return 0
	}
	return Rate(float64(b) / t.Seconds())
}

// Pace is a rate prepared for repeated use: picoseconds per byte as a 32.32
// fixed-point number, so that the simulator neither divides nor rounds
// differently on different machines. The zero Pace takes no time at all.
type Pace uint64

// Pace returns the pace of r. It panics unless r is at least 1 kB/s (slower
// does not fit) and not NaN.
func (r Rate) Pace() Pace {
	if !(r >= 1e3) {
		panic(fmt.Sprintf("units: rate %g B/s is too slow for a pace", float64(r)))
	}
	return Pace(math.Round(float64(Second) / float64(r) * (1 << 32)))
}

// Slower returns the pace at a share of the rate, above 0.
func (p Pace) Slower(share float64) Pace { return Pace(float64(p) / share) }

// Rescale returns how long what took t at another pace, not 0, takes at pace p,
// rounded up to a picosecond. It saturates at the largest Time.
func (p Pace) Rescale(t Time, other Pace) Time {
	hi, lo := bits.Mul64(uint64(t), uint64(p))
	lo, carry := bits.Add64(lo, uint64(other)-1, 0)
	hi += carry
	if hi >= uint64(other) {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(hi, lo, uint64(other))
	return Time(min(quotient, math.MaxInt64))
}

// Of returns how long n bytes take at pace p, rounded up to a picosecond. It
// saturates at the largest Time.
func (p Pace) Of(n Bytes) Time {
	hi, lo := bits.Mul64(uint64(p), uint64(n))
	lo, carry := bits.Add64(lo, 1<<32-1, 0)
	hi += carry
	if hi >= 1<<31 {
		return math.MaxInt64
	}
	return Time(hi<<32 | lo>>32)
}
