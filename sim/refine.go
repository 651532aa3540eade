package sim

import (
	"slices"

	"tutti/topo"
)

// within divides the workers and connections of a machine, and the links of any
// place.
func (y *symmetry) within() [3][]int32 {
	_, perPlace := y.cluster.Places()
	w, c, l := make([]digest, y.workers), make([]digest, y.connections), make([]digest, perPlace)
	y.labelLinks(l)
	for round := 0; ; round++ {
		nw, nc, nl := slices.Clone(w), slices.Clone(c), slices.Clone(l)
		for number, s := range y.shapes {
			for i, worker := range s.workers {
				d := sum(0)
				for _, p := range worker.ports {
					d.plus(digest(p.label).add(uint64(p.connection.at)).add(uint64(c[p.connection.local])))
				}
				nw[i] = nw[i].add(worker.label).add(uint64(d)).add(uint64(number))
			}
			crossed := make([]sum, perPlace)
			for _, list := range [][]localConnection{s.connections, s.foreign} {
				for _, n := range list {
					user := digest(n.at).add(uint64(c[n.local]))
					for _, link := range n.links {
						if link.at == own {
							crossed[link.local].plus(user)
						}
					}
				}
			}
			for i, n := range s.connections {
				d := sum(0)
				for _, e := range n.ends {
					d.plus(digest(e.label).add(uint64(e.worker.at)).add(uint64(w[e.worker.local])))
				}
				for _, link := range n.links {
					d.plus(digest(1).add(uint64(link.at)).add(uint64(l[link.local])))
				}
				nc[i] = nc[i].add(n.label).add(uint64(d)).add(uint64(number))
			}
			for i := range nl {
				nl[i] = nl[i].add(uint64(crossed[i])).add(uint64(number))
			}
		}
		for i, d := range y.crossedAmong(c, perPlace) {
			nl[i] = nl[i].add(uint64(d))
		}
		same := distinct(w) == distinct(nw) && distinct(c) == distinct(nc) && distinct(l) == distinct(nl)
		w, c, l = nw, nc, nl
		if same && round > 0 {
			return [...][]int32{numbered(w), numbered(c), numbered(l)}
		}
	}
}

// labelLinks gives the links of places the labels to begin with: what they are on
// each machine of a mixture.
func (y *symmetry) labelLinks(l []digest) {
	var alike []*topo.Cluster
	for _, m := range y.cluster.Machines() {
		alike = append(alike, y.cluster.AllOf(m))
	}
	for _, s := range y.shapes {
		for _, list := range [][]localConnection{s.connections, s.foreign} {
			for _, n := range list {
				for _, link := range n.links {
					l[link.local] = 0
					for _, c := range alike {
						kind, rate := c.Link(y.link(s.node, link))
						l[link.local] = l[link.local].add(uint64(kind)).add(uint64(rate))
					}
				}
			}
		}
	}
}

// link returns the link that a ref means at a node.
func (y *symmetry) link(node int, r ref) int {
	return y.cluster.LinkAt(y.place(node, r), int(r.local))
}

// crossedAmong tells, for the links of groups of leaves, which connections of
// which machines cross them.
func (y *symmetry) crossedAmong(c []digest, perPlace int) []digest {
	places, _ := y.cluster.Places()
	nodes := y.cluster.Nodes
	type crossing struct {
		link ref
		user digest
	}
	users := make([]map[crossing]uint64, len(y.shapes)) // how many of a class; those above the machines are the same for a shape
	for i, s := range y.shapes {
		users[i] = map[crossing]uint64{}
		for _, n := range s.connections {
			for _, link := range n.links {
				if link.at != own && int(y.neighbours[s.node][link.at]) >= nodes {
					users[i][crossing{link, c[n.local]}]++
				}
			}
		}
	}
	crossed := make([]sum, (places-nodes)*perPlace)
	for node, number := range y.shape {
		for u, count := range users[number] {
			place := int(y.neighbours[node][u.link.at])
			crossed[(place-nodes)*perPlace+int(u.link.local)].times(count, digest(node).add(uint64(u.user)))
		}
	}
	all := make([]digest, perPlace)
	for i, d := range crossed {
		all[i%perPlace] = all[i%perPlace].add(uint64(d))
	}
	return all
}

// among divides the places.
func (y *symmetry) among() []int32 {
	places, _ := y.cluster.Places()
	nodes := y.cluster.Nodes
	d := make([]digest, places)
	for node, s := range y.shape {
		d[node] = digest(s)
	}
	for i := nodes; i < places; i++ {
		d[i] = digest(1).add(1)
	}
	for before := distinct(d); ; {
		next := slices.Clone(d)
		groups := make([]sum, places-nodes)
		for node, list := range y.neighbours {
			for i, n := range list {
				next[node] = next[node].add(uint64(d[n]))
				if int(n) >= nodes {
					groups[int(n)-nodes].plus(digest(i).add(uint64(d[node])))
				}
			}
		}
		for i, s := range groups {
			next[nodes+i] = next[nodes+i].add(uint64(s))
		}
		d = next
		now := distinct(d)
		if now == before || now == places {
			return numbered(d)
		}
		before = now
	}
}
