package live

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// nics adds the network ports that NCCL would use: InfiniBand and RoCE if there
// are any, else the interfaces of the kernel's network stack.
func (h *host) nics() error {
	ports := h.infiniband()
	if len(ports) == 0 {
		ports = h.sockets()
	}
	for i, p := range ports {
		var parent *element
		var err error
		if address.MatchString(filepath.Base(p.device)) {
			parent, err = h.pci(p.device, filepath.Base(p.device))
		} else {
			parent, err = h.cpu("-1")
		}
		if err != nil {
			return err
		}
		nic := child(parent, "nic")
		net := nic.add("net")
		net.set("name", p.name)
		net.set("dev", i)
		net.set("latency", 0)
		net.set("speed", p.mbps)
		net.set("port", p.port)
		net.set("guid", p.guid)
		net.set("maxconn", p.connections)
		net.set("gdr", p.gdr)
	}
	return nil
}

// port is one port of a NIC.
type port struct {
	name, device, guid           string
	mbps, port, connections, gdr int
}

// child returns the first child of a name, made if need be.
func child(e *element, name string) *element {
	for _, c := range e.children {
		if c.name == name {
			return c
		}
	}
	return e.add(name)
}

func (h *host) list(dir string) []string {
	entries, _ := os.ReadDir(filepath.Join(h.root, dir)) // none where the kernel lacks it
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// follow returns where a link of sysfs leads.
func (h *host) follow(path string) string {
	to, err := filepath.EvalSymlinks(filepath.Join(h.root, path))
	if err != nil {
		return ""
	}
	return h.inside(to)
}

// infiniband lists the active ports of the kernel's verbs devices.
func (h *host) infiniband() []port {
	gdr := 0
	if _, err := os.Stat(filepath.Join(h.root, "sys/module/nvidia_peermem")); err == nil {
		gdr = 1
	}
	var ports []port
	for _, device := range h.list("sys/class/infiniband") {
		dir := filepath.Join("sys/class/infiniband", device)
		for _, number := range h.list(filepath.Join(dir, "ports")) {
			if !strings.Contains(h.read(dir, "ports", number, "state"), "ACTIVE") {
				continue
			}
			n, _ := strconv.Atoi(number)
			gbps, _ := strconv.ParseFloat(strings.Fields(h.read(dir, "ports", number, "rate") + " 0")[0], 64)
			ports = append(ports, port{
				name: device, device: h.follow(filepath.Join(dir, "device")), port: n, mbps: int(gbps * 1000),
				guid: "0x" + strings.TrimLeft(strings.ReplaceAll(h.read(dir, "node_guid"), ":", ""), "0"), connections: 131072, gdr: gdr,
			})
		}
	}
	return ports
}

// Values that NCCL's socket transport assumes.
const (
	socketMbps        = 10000
	socketConnections = 65536
)

// sockets lists the network interfaces of real or virtual hardware; loopback,
// bridges and the like have no device.
func (h *host) sockets() []port {
	var ports []port
	for _, name := range h.list("sys/class/net") {
		device := h.follow(filepath.Join("sys/class/net", name, "device"))
		if device == "" {
			continue
		}
		mbps := number(h.read("sys/class/net", name, "speed"))
		if mbps <= 0 {
			mbps = socketMbps
		}
		ports = append(ports, port{name: name, device: device, mbps: mbps, guid: "0x0", connections: socketConnections})
	}
	return ports
}
