package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tutti/experiments/figure"
	"tutti/experiments/rows"
	"tutti/experiments/sweep"
	"tutti/experiments/traffic"
	"tutti/model/units"
	"tutti/topo"
)

// linkFlags ask for what a call puts on links.
type linkFlags struct {
	links, heatMap string
}

const (
	listed   = "20" // links of a case, unless the user says
	allLinks = "all"
)

func (f *linkFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.links, "links", "", "tell of links in the place of results: what each carries, for which part of the time it is busy, at which rate: the N busiest, where one stands for those that carry as much; or all, each for itself")
	flags.Lookup("links").NoOptDefVal = listed
	flags.StringVar(&f.heatMap, "heatmap", "", "draw how busy all links are, of one case: a name ending in .png, .svg or .pdf")
}

// ask has a study keep what is wanted. Its errors are of usage, but for a figure
// that cannot be written.
func (f *linkFlags) ask(c *cobra.Command, s *sweep.Study) error {
	if f.links != "" {
		if _, err := f.most(); err != nil {
			return usage(err)
		}
		if err := exclusive(c, "links", "with", "shard"); err != nil {
			return usage(err)
		}
		s.Links = traffic.Links
		if f.links == allLinks {
			s.Links = traffic.Each
		}
	}
	if s.Map = f.heatMap != ""; s.Map {
		return checkFigure("heatmap", f.heatMap)
	}
	return nil
}

// errIdle says that there is nothing to tell.
var errIdle = errors.New("no link carries anything: want two ranks at least")

// most is how many links of a case are told: 0 is all.
func (f *linkFlags) most() (int, error) {
	if f.links == allLinks {
		return 0, nil
	}
	n, err := strconv.Atoi(f.links)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("--links=%s: want how many, from 1 up, or all", f.links)
	}
	return n, nil
}

// one makes sure that a map has one case.
func (f *linkFlags) one(jobs []sweep.Job) error {
	if f.heatMap == "" || len(jobs) == 1 {
		return nil
	}
	return usage(fmt.Errorf("--heatmap draws one case, and these are %d: want one of --nodes, --algo, --proto and --sizes each", len(jobs)))
}

// drawMap draws the map, if there is to be one.
func (f *linkFlags) drawMap(c *cobra.Command, done []sweep.Done, notes io.Writer) error {
	if f.heatMap == "" {
		return nil
	}
	r := done[0].Row
	where := topo.ShortName(r.Machine)
	if mixture, _ := topo.ParseMixture(r.Machine); mixture == nil {
		where = fmt.Sprintf("%d x %s", r.Nodes, where)
	}
	if r.Why.Fabric != "" {
		where += " on " + r.Why.Fabric
	}
	subtitle := fmt.Sprintf("%v, %.1f GB/s of bus bandwidth, %.0f %% of the bound; held up by %s, %.0f %% of the time",
		r.Time, float64(r.BusBW()/units.GBps), 100*float64(r.Why.Bound)/float64(r.Time), r.Why.Bottleneck, 100*r.Why.Share)
	if len(done[0].Map.Bands) == 0 {
		return errIdle
	}
	if err := figure.WriteHeatMap(f.heatMap, fmt.Sprintf("Links: %s, %s", inShort(r), where), subtitle, done[0].Map); err != nil {
		return err
	}
	fmt.Fprintf(notes, "heat map: %s\n", f.heatMap)
	return nil
}

// inShort names a case.
func inShort(r rows.Row) string {
	return fmt.Sprintf("%v by %v over %v, %v on %d ranks", r.Collective, r.Algorithm, r.Protocol, r.Bytes, r.Ranks)
}

// linkRow is what a link, or each of several, carried.
type linkRow struct {
	Order    int     `json:"order"`
	Link     string  `json:"link"`
	Kind     string  `json:"kind"`
	Alike    int     `json:"alike"`
	Bytes    int64   `json:"bytes"`
	Busy     float64 `json:"busy_share"`
	Rate     float64 `json:"rate_GBps"`
	Capacity float64 `json:"capacity_GBps"`
}

func newLinkRow(i int, l traffic.Link) linkRow {
	return linkRow{i + 1, l.Name, l.Kind, l.Alike, int64(l.Bytes), l.Busy, float64(l.Rate / units.GBps), float64(l.Capacity / units.GBps)}
}

// writeLinks tells of each case's links, the busiest first.
func (f *linkFlags) writeLinks(w io.Writer, done []sweep.Done, out *outputFlags) error {
	most, err := f.most()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(done, func(d sweep.Done) bool { return len(d.Links) > 0 }) {
		return errIdle
	}
	cut := func(links []traffic.Link) []traffic.Link {
		if most == 0 {
			return links
		}
		return links[:min(most, len(links))]
	}
	switch {
	case out.json:
		return writeLinksJSON(w, done, cut)
	case out.csv:
		return writeLinksCSV(w, done, cut)
	}
	for i, d := range done {
		if i > 0 {
			fmt.Fprintln(w)
		}
		r := d.Row
		_, err := fmt.Fprintf(w, "# %s of %s, %d channels: %.2f us, at least %.2f us; held up by %s, %.0f %%\n", inShort(r), r.Machine, r.Channels,
			r.Time.Microseconds(), r.Why.Bound.Microseconds(), r.Why.Bottleneck, 100*r.Why.Share)
		if err != nil {
			return err
		}
		t := &table{header: strings.Fields("order link alike size(B) busy(%) rate(GB/s) of(GB/s)")}
		for i, l := range cut(d.Links) {
			row := newLinkRow(i, l)
			t.add(strconv.Itoa(row.Order), row.Link, strconv.Itoa(row.Alike), strconv.FormatInt(row.Bytes, 10), fmt.Sprintf("%.1f", 100*row.Busy), fmt.Sprintf("%.2f", row.Rate), number(row.Capacity))
		}
		if err := t.write(w, false); err != nil {
			return err
		}
		if left := len(d.Links) - len(t.rows); left > 0 {
			if _, err := fmt.Fprintf(w, "# and %d more: --links=%d\n", left, len(d.Links)); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeLinksCSV(w io.Writer, done []sweep.Done, cut func([]traffic.Link) []traffic.Link) error {
	t := &table{header: append(rows.Header(), strings.Split("order,link,kind,alike,link_bytes,busy_share,rate_GBps,capacity_GBps", ",")...)}
	for _, d := range done {
		for i, l := range cut(d.Links) {
			row := newLinkRow(i, l)
			t.add(append(d.Row.Fields(), strconv.Itoa(row.Order), row.Link, row.Kind, strconv.Itoa(row.Alike), strconv.FormatInt(row.Bytes, 10),
				fmt.Sprintf("%.4f", row.Busy), fmt.Sprintf("%.4f", row.Rate), fmt.Sprintf("%.4f", row.Capacity))...)
		}
	}
	return t.write(w, true)
}

func writeLinksJSON(w io.Writer, done []sweep.Done, cut func([]traffic.Link) []traffic.Link) error {
	type one struct {
		rows.JSON
		Links []linkRow `json:"links"`
	}
	list := make([]one, len(done))
	for i, d := range done {
		list[i] = one{JSON: d.Row.JSON(), Links: []linkRow{}}
		for k, l := range cut(d.Links) {
			list[i].Links = append(list[i].Links, newLinkRow(k, l))
		}
	}
	return writeJSON(w, struct {
		Schema string `json:"schema"`
		Cases  []one  `json:"cases"`
	}{"tutti.links/1", list})
}
