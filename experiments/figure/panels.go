package figure

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"tutti/experiments/rows"
	"tutti/model"
	"tutti/topo"
)

// panel is one plot: the lines of an algorithm by cluster size or, where there
// is one cluster only, the lines of all algorithms.
type panel struct {
	title string
	lines []line
}

type line struct {
	name string
	rows []rows.Row
	// shade is where the line stands in an order of all panels' lines, from 0 to
	// 1.
	shade float64
}

// panels sorts the rows, in their order, into panels and lines. By size there is
// a panel for each algorithm with a line for each cluster, or a single one where
// there is one cluster or one way for each size; by ranks it is sizes that have
// lines. Machines, fabrics, protocols and numbers of channels are told apart
// where one place on the axis has several.
func panels(list []rows.Row, by axis) (out []panel, grouped bool) {
	grouped = kinds(list, by.group) > 1
	at := func(r rows.Row) rows.Row { return rows.Row{Ranks: r.Ranks, Bytes: r.Bytes} }
	ways := kinds(list, at) < len(list)
	both := slices.ContainsFunc(list, func(r rows.Row) bool { return r.Algorithm == model.NVLS && r.Nodes > 1 })
	var parts []func(rows.Row) string
	algorithm := func(r rows.Row) string {
		if by.clusters && grouped && r.Algorithm == model.NVLSTree && !both {
			return model.NVLS.String() // one panel for both
		}
		return r.Algorithm.String()
	}
	for _, part := range []func(rows.Row) string{
		algorithm,
		func(r rows.Row) string { return r.Machine },
		func(r rows.Row) string { return fabricOf(r) },
		func(r rows.Row) string { return r.Protocol.String() },
		func(r rows.Row) string {
			if r.Source == "model" || r.Source == "sim" { // the title says it
				return ""
			}
			return r.Source
		},
		func(r rows.Row) string { return fmt.Sprintf("%d channels", r.Channels) },
	} {
		before := kinds(list, key(at, parts))
		with := append(slices.Clip(parts), part)
		if len(parts) == 0 || kinds(list, key(at, with)) > before {
			parts = with
		}
	}
	var groups []rows.Row
	for _, r := range list {
		if g := by.group(r); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	for _, r := range list {
		way := strings.Join(words(r, parts), " ")
		title, name := "", way
		if grouped {
			name = by.name(r)
			if ways {
				title = way
			}
		}
		p := find(&out, func(p panel) bool { return p.title == title }, panel{title: title})
		shade := float64(slices.Index(groups, by.group(r))) / float64(max(1, len(groups)-1))
		l := find(&p.lines, func(l line) bool { return l.name == name }, line{name: name, shade: shade})
		l.rows = append(l.rows, r)
	}
	return out, grouped
}

// key returns a row's place, with some of its parts.
func key(at func(rows.Row) rows.Row, parts []func(rows.Row) string) func(rows.Row) rows.Row {
	return func(r rows.Row) rows.Row {
		k := at(r)
		k.Machine = strings.Join(words(r, parts), "/")
		return k
	}
}

func words(r rows.Row, parts []func(rows.Row) string) (words []string) {
	for _, part := range parts {
		if word := part(r); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// fabricOf names what joins the machines, if there are several.
func fabricOf(r rows.Row) string {
	switch {
	case r.Why == nil:
		return ""
	case r.Why.Fabric == "":
		return "one machine"
	}
	return strings.TrimSuffix(path.Base(r.Why.Fabric), ".yaml")
}

// kinds counts how many rows differ in their key.
func kinds(list []rows.Row, key func(rows.Row) rows.Row) int {
	seen := map[rows.Row]bool{}
	for _, r := range list {
		seen[key(r)] = true
	}
	return len(seen)
}

// find returns the element that fits, appending fresh if there is none.
func find[T any](list *[]T, fits func(T) bool, fresh T) *T {
	i := slices.IndexFunc(*list, fits)
	if i < 0 {
		i = len(*list)
		*list = append(*list, fresh)
	}
	return &(*list)[i]
}

// title says what all rows have in common.
func title(list []rows.Row) string {
	first := list[0]
	one := func(key func(rows.Row) rows.Row) bool { return kinds(list, key) == 1 }
	words := first.Collective.String()
	if one(func(r rows.Row) rows.Row { return rows.Row{Bytes: r.Bytes} }) && len(list) > 1 {
		words += " of " + first.Bytes.String()
	}
	if one(func(r rows.Row) rows.Row { return rows.Row{Algorithm: r.Algorithm} }) {
		words += " by " + first.Algorithm.String()
	}
	place := ""
	if one(func(r rows.Row) rows.Row { return rows.Row{Ranks: r.Ranks} }) {
		place = fmt.Sprintf("%d GPUs", first.Ranks)
	}
	if one(func(r rows.Row) rows.Row { return rows.Row{Machine: r.Machine} }) {
		place = strings.TrimPrefix(place+" of "+topo.ShortName(first.Machine), " of ")
	}
	if place != "" {
		words += " on " + place
	}
	switch first.Source {
	case "sim":
		words += ", simulated"
	case "model":
		words += ", modelled"
	}
	return words
}
