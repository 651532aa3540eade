package topo

import "fmt"

// CableNames returns the names, as [Cluster.LinkName] has them, of the cables
// that a link stands for: those of a trunk under adaptive routing, else its own.
func (c *Cluster) CableNames(link int) []string {
	if link < c.cables() || !c.tierOf(link).pooled {
		return []string{c.LinkName(link)}
	}
	t := c.tierOf(link)
	below, group := &c.tiers[t.level-1], (link-t.First)/2
	var names []string
	for plane := range below.Planes {
		for way := range t.Parents * t.Parallel {
			names = append(names, c.directed(link, t.cableEnds(below, group, plane, way)))
		}
	}
	return names
}

// cableEnds names the switches that a cable joins: the one of the given way up
// from a switch, which is named by its group and its place there.
func (t *Tier) cableEnds(below *Tier, group, plane, way int) (ends [2]string) {
	ends[0] = fmt.Sprintf("%s %d", below.Name, group*below.Planes+plane)
	ends[1] = fmt.Sprintf("%s %d", t.Name, t.above(below, group)*t.Planes+plane*t.Parents+way/t.Parallel)
	if t.Parallel > 1 {
		ends[1] += fmt.Sprintf(" cable %d", way%t.Parallel)
	}
	return ends
}

// above returns the group that a group of the tier below has cables to.
func (t *Tier) above(below *Tier, group int) int {
	return group/below.Rails*below.Nodes/t.Nodes*t.Rails + group%below.Rails%t.Rails
}

// directed joins the names of the lower and the upper end of a link between
// switches in the order in which it carries data.
func (c *Cluster) directed(link int, ends [2]string) string {
	if (link-c.tierOf(link).First)%2 != 0 {
		ends[0], ends[1] = ends[1], ends[0]
	}
	return ends[0] + " > " + ends[1]
}
