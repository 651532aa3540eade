package units_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"tutti/model/units"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]units.Rate{
		"400 Gb/s": 50 * units.GBps, "400Gbps": 50 * units.GBps, "50 GB/s": 50 * units.GBps,
		"0.8 Tb/s": 100 * units.GBps, "8000kb/s": units.MBps,
	} {
		got, err := units.ParseRate(text)
		assert.NoError(t, err)
		assert.InEpsilon(t, float64(want), float64(got), 1e-12, text)
	}
	for _, text := range []string{"", "400", "400 G", "-1 Gb/s", "fast", "1e3 Gb/s"} {
		_, err := units.ParseRate(text)
		assert.ErrorContains(t, err, "is not a rate: want a number with its unit", text)
	}
}

func TestParseTime(t *testing.T) {
	for text, want := range map[string]units.Time{
		"250 ns": 250 * units.Nanosecond, "1.5us": 1500 * units.Nanosecond, "0.1 ms": 100 * units.Microsecond, "7ps": 7,
	} {
		got, err := units.ParseTime(text)
		assert.NoError(t, err)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "250", "-1 ns", "soon"} {
		_, err := units.ParseTime(text)
		assert.ErrorContains(t, err, "is not a time: want a number with its unit", text)
	}
	_, err := units.ParseTime("99999999999 s")
	assert.ErrorContains(t, err, "out of range")
}
