package sim

import (
	"slices"

	"tutti/topo"
)

// within divides the workers and connections of a machine, and the links of any
// place.
func (y *symmetry) within() [3][]int32 {
	_, perPlace := y.cluster.Places()
	w, c, l := make([]digest, y.workers.most), make([]digest, y.connections.most), make([]digest, perPlace)
	y.labelLinks(l)
	for round := 0; ; round++ {
		nw, nc, nl := slices.Clone(w), slices.Clone(c), slices.Clone(l)
		for number, k := range y.kinds {
			for i, worker := range k.workers {
				d := sum(0)
				for _, p := range worker.ports {
					d.plus(digest(p.label).add(uint64(p.connection.at)).add(uint64(c[p.connection.local])))
				}
				nw[i] = nw[i].add(worker.label).add(uint64(d)).add(uint64(number))
			}
			inside, leaving := k.users(c, perPlace)
			ways := make([]digest, len(k.passages)) // what they cross on all machines of the kind
			for _, s := range k.shapes {
				crossed := slices.Clone(inside)
				for p, links := range s.crossed {
					ways[p] = ways[p].add(uint64(sumOf(links, l)))
					for _, link := range links {
						if link.at == own {
							crossed[link.local].plus(digest(leaving[p]))
						}
					}
				}
				for i := range nl {
					nl[i] = nl[i].add(uint64(crossed[i])).add(uint64(number))
				}
			}
			for i := range k.connections {
				n, d := &k.connections[i], sum(0)
				for _, e := range n.ends {
					d.plus(digest(e.label).add(uint64(e.worker.at)).add(uint64(w[e.worker.local])))
				}
				way := digest(sumOf(n.links, l))
				if n.passage != own {
					way = ways[n.passage]
				}
				nc[i] = nc[i].add(n.label).add(uint64(d)).add(uint64(way)).add(uint64(number))
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

// users tells which connections cross each link of a machine without leaving it,
// and which leave it by each passage.
func (k *kind) users(c []digest, perPlace int) (inside, leaving []sum) {
	inside, leaving = make([]sum, perPlace), make([]sum, len(k.passages))
	for _, list := range [][]localConnection{k.connections, k.foreign} {
		for i := range list {
			n := &list[i]
			user := digest(n.at).add(uint64(c[n.local]))
			if n.passage != own {
				leaving[n.passage].plus(user)
			}
			for _, link := range n.links {
				if link.at == own {
					inside[link.local].plus(user)
				}
			}
		}
	}
	return inside, leaving
}

// sumOf tells which links these are, given their labels.
func sumOf(links []ref, l []digest) (d sum) {
	for _, link := range links {
		d.plus(digest(1).add(uint64(link.at)).add(uint64(l[link.local])))
	}
	return d
}

// labelLinks gives the links of places the labels to begin with: what they are on
// each machine of a mixture.
func (y *symmetry) labelLinks(l []digest) {
	var alike []*topo.Cluster
	for i := range y.cluster.Machines() {
		alike = append(alike, y.cluster.AllOf(i))
	}
	label := func(node int, links []ref) {
		for _, link := range links {
			if l[link.local] != 0 {
				continue
			}
			for _, c := range alike {
				kind, rate := c.Link(y.link(node, link))
				l[link.local] = l[link.local].add(uint64(kind)).add(uint64(rate))
			}
		}
	}
	for _, k := range y.kinds {
		for _, list := range [][]localConnection{k.connections, k.foreign} {
			for i := range list {
				label(k.node, list[i].links)
			}
		}
		for _, s := range k.shapes {
			for _, links := range s.crossed {
				label(s.node, links)
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
	crossed := make([]sum, (places-nodes)*perPlace)
	leaving := map[*kind][]sum{}
	for _, k := range y.kinds {
		sums := make([]sum, len(k.passages))
		for i := range k.connections {
			if n := &k.connections[i]; n.passage != own {
				sums[n.passage].plus(c[n.local])
			}
		}
		leaving[k] = sums
	}
	for node, number := range y.shape {
		s := y.shapes[number]
		for p, links := range s.crossed {
			for _, link := range links {
				if link.at == own {
					continue
				}
				if place := int(y.neighbours[node][link.at]); place >= nodes {
					crossed[(place-nodes)*perPlace+int(link.local)].plus(digest(node).add(uint64(leaving[s.kind][p])))
				}
			}
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
