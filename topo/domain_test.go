package topo_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/topo"
)

// Joining the trays of a rack gives the machine that is built in for the rack.
func TestJoinNVLink(t *testing.T) {
	tray, err := topo.XML("gb200x4")
	require.NoError(t, err)
	text, err := topo.JoinNVLink(tray, 18)
	require.NoError(t, err)
	joined, err := topo.ReadXML(bytes.NewReader(text), "joined")
	require.NoError(t, err)
	rack := open(t, "gb200-nvl72")
	require.Len(t, joined.GPUs, len(rack.GPUs))
	require.Len(t, joined.NETs, len(rack.NETs))
	for i, a := range rack.GPUs {
		for j, b := range rack.GPUs {
			want, got := rack.Path(a, b), joined.Path(joined.GPUs[i], joined.GPUs[j])
			require.Equal(t, want.Type, got.Type)
			require.Equal(t, want.Rate, got.Rate)
			require.Len(t, got.Links, len(want.Links))
		}
		for k, net := range rack.NETs {
			require.Equal(t, rack.Path(a, net).Type, joined.Path(joined.GPUs[i], joined.NETs[k]).Type)
		}
	}
}

func TestJoinNVLinkErrors(t *testing.T) {
	pcie, err := topo.XML("l40x4-pcie")
	require.NoError(t, err)
	_, err = topo.JoinNVLink(pcie, 2)
	assert.EqualError(t, err, "an NVLink domain joins hosts by NVLink switches, and this machine has none")
	_, err = topo.JoinNVLink(pcie, 1000)
	assert.EqualError(t, err, "1000 hosts in an NVLink domain: want 1 to 256")
	_, err = topo.JoinNVLink([]byte("<system"), 2)
	assert.EqualError(t, err, "host:1: not XML: unexpected EOF")
}
