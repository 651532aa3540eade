package sim

import (
	"tutti/model/profile"
	"tutti/topo"
)

// generations has the constants by which the GPUs of a cluster copy. In a mixed
// cluster, those of another generation than the profile's copy at the rates that
// are built in for theirs; all else is the profile's, which should be that of the
// slowest.
type generations struct {
	cluster *topo.Cluster
	profile *profile.Profile
	others  map[int]*profile.Profile // by compute capability
}

// of returns the constants of a rank's GPU.
func (g *generations) of(rank int) *profile.Profile {
	sm := g.cluster.SM(rank)
	if !g.cluster.Mixed() || g.profile.SM == 0 || g.profile.SM/10 == sm/10 {
		return g.profile
	}
	if g.others[sm] == nil {
		g.others[sm] = profile.ForGPU(sm)
	}
	return g.others[sm]
}
