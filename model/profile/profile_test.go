package profile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/units"
	"tutti/topo"
)

// A profile of one's own changes what it names and leaves the rest.
func TestLayers(t *testing.T) {
	mine := filepath.Join(t.TempDir(), "mine.yaml")
	require.NoError(t, os.WriteFile(mine, []byte(small), 0o600))
	base, err := profile.Open("h200-nvswitch,ndr-rail")
	require.NoError(t, err)
	p, err := profile.Open("h200-nvswitch,ndr-rail," + mine)
	require.NoError(t, err)
	assert.Equal(t, 3*units.Microsecond, p.Base[model.Ring][model.LL])
	assert.Equal(t, .9, p.Efficiency[topo.LinkNET])
	assert.Equal(t, base.Base[model.Tree], p.Base[model.Tree])
	_, err = profile.Open("h200-nvswitch")
	assert.ErrorContains(t, err, "profile h200-nvswitch: no value for handover.network.ring.ll, ", "h200-nvswitch alone has no network")
	_, err = profile.Open("h300")
	assert.EqualError(t, err, `unknown profile "h300": want one of a100-nvswitch, b200-nvswitch, h100-nvswitch, h200-nvswitch, ndr-rail, v100-nvlink, or a FILE.yaml`)
}

// Every built-in profile is whole on rails, for every generation.
func TestBuiltIn(t *testing.T) {
	for _, name := range profile.Profiles() {
		if name != "ndr-rail" {
			_, err := profile.Open(name + ",ndr-rail")
			assert.NoError(t, err)
		}
	}
	for _, sm := range []int{70, 80, 86, 90, 100, 120} {
		assert.NotEmpty(t, profile.ForGPU(sm).Copy[model.LL], "%d", sm)
	}
}

const small = `about: "my machine"
sources:
  me: {kind: measured, data: "my rows"}
constants:
  from: me
  base:
    ring: {ll: 3 us}
  efficiency:
    net: {value: 45/50, from: me}
`

func TestParseErrors(t *testing.T) {
	for want, text := range map[string]string{
		"f:1: not a profile: want about, sources and constants":                                           "- 1",
		"f:3: source me: want {kind: measured|fitted|datasheet, data: WHERE}":                             strings.Replace(small, "measured", "guessed", 1),
		`f:5: unknown source "you": want one of me`:                                                       strings.Replace(small, "from: me\n", "from: you\n", 1),
		"f:7: unknown constant base.ring.lll":                                                             strings.Replace(small, "ll:", "lll:", 1),
		`f:7: base.ring.ll is "3 ms": want a time in us from 0 up, such as 3.4 us`:                        strings.Replace(small, "3 us", "3 ms", 1),
		`f:7: base.ring.ll is ".nan": want a time in us from 0 up, such as 3.4 us`:                        strings.Replace(small, "3 us", ".nan", 1),
		`f:9: efficiency.net is "55/50": want a share above 0 and at most 1, such as 0.97 or 361.2/370.8`: strings.Replace(small, "45/50", "55/50", 1),
		"f:6: base.ring.ll has no source: want from: and one of sources":                                  strings.Replace(small, "  from: me\n", "", 1),
		"f:10: efficiency.net stands on line 9 already":                                                   small + "    net: 1\n",
		`f:10: unknown "more": want about, sm, sources or constants`:                                      small + "more: 1\n",
		"f:1: no constants":              "about: none",
		"f:1: constants: want a mapping": "constants: 7",
	} {
		_, err := profile.Parse([]byte(text), "f")
		assert.EqualError(t, err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(small)
	f.Fuzz(func(t *testing.T, text string) {
		if file, err := profile.Parse([]byte(text), "f"); err == nil {
			assert.NotEmpty(t, file.Constants)
		}
	})
}
