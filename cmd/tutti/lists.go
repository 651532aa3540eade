package main

import (
	"fmt"
	"strconv"
	"strings"

	"tutti/topo"
	"tutti/topo/fabric"
)

// machineInfo is what is told of a machine in one line.
type machineInfo struct {
	Name     string   `json:"name"`
	Aliases  []string `json:"aliases,omitempty"`
	GPUs     int      `json:"gpus"`
	SM       int      `json:"sm"`
	NVLinks  int      `json:"nvlinks_per_gpu"`
	NVLink   float64  `json:"nvlink_GBps_per_gpu"`
	NVSwitch bool     `json:"nvswitch"`
	NETs     int      `json:"nets"`
	NETRate  float64  `json:"net_Gbps"`
	CPUs     int      `json:"numa_nodes"`
	About    string   `json:"about,omitempty"`
	Source   string   `json:"source,omitempty"`
}

func summarise(name string, s *topo.System) machineInfo {
	about, source := topo.About(name)
	m := machineInfo{
		Name: name, Aliases: topo.Aliases(name), GPUs: len(s.GPUs), SM: s.SM(), NVSwitch: s.NVS >= 0,
		NETs: len(s.NETs), CPUs: len(s.CPUs), About: about, Source: source,
	}
	m.NVLinks, m.NVLink = nvlinks(s, s.GPUs[0])
	for _, net := range s.NETs {
		m.NETRate = max(m.NETRate, gbps(netRate(s, net)))
	}
	return m
}

func machineList() ([]machineInfo, error) {
	var list []machineInfo
	for _, name := range topo.Machines() {
		s, err := topo.Open(name)
		if err != nil {
			return nil, err
		}
		list = append(list, summarise(name, s))
	}
	return list, nil
}

func machineTable(list []machineInfo) *table {
	t := &table{header: []string{"machine", "GPUs", "arch", "NVLinks", "NVLink(GB/s)", "NVSwitch", "NICs", "NIC(Gb/s)", "also", "source"}}
	for _, m := range list {
		count, rate := none, none
		if m.NVLinks > 0 {
			count, rate = strconv.Itoa(m.NVLinks), number(m.NVLink)
		}
		first, _, _ := strings.Cut(m.Source, ". ")
		t.add(m.Name, strconv.Itoa(m.GPUs), fmt.Sprintf("sm_%d", m.SM), count, rate, yes(m.NVSwitch),
			strconv.Itoa(m.NETs), number(m.NETRate), strings.Join(m.Aliases, " "), strings.TrimSuffix(first, "."))
	}
	return t
}

// fabricInfo is what is told of a fabric in one line.
type fabricInfo struct {
	Name    string `json:"name"`
	Levels  int    `json:"levels"`
	Routing string `json:"routing"`
	Machine string `json:"machine,omitempty"`
	Nodes   int    `json:"nodes,omitempty"`
	About   string `json:"about"`
	Source  string `json:"source"`
}

func fabricList() ([]fabricInfo, error) {
	var list []fabricInfo
	for _, name := range fabric.Names() {
		s, err := fabric.Open(name)
		if err != nil {
			return nil, err
		}
		list = append(list, fabricInfo{name, len(s.Fabric.Levels), s.Fabric.Routing.String(), s.Machine, s.Nodes, s.About, s.Source})
	}
	return list, nil
}

func fabricTable(list []fabricInfo) *table {
	t := &table{header: []string{"fabric", "levels", "routing", "for", "about"}}
	for _, f := range list {
		cluster := "any"
		if f.Machine != "" {
			cluster = fmt.Sprintf("%d x %s", f.Nodes, f.Machine)
		}
		t.add(f.Name, strconv.Itoa(f.Levels), f.Routing, cluster, f.About)
	}
	return t
}
