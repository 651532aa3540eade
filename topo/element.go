package topo

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// Limits that keep a hostile file from taking memory or time: the largest real
// dump seen, 8 GPUs with 32 NICs, has 150 elements in 15 kB, and a domain of 72
// GPUs ten times as many.
const (
	maxFileBytes = 4 << 20
	maxElements  = 1 << 14
	maxDepth     = 64
)

// element is an XML element with the line that it starts on.
type element struct {
	name     string
	attrs    []xml.Attr
	children []*element
	line     int
}

// attr returns the value of an attribute.
func (e *element) attr(name string) (value string, found bool) {
	for _, a := range e.attrs {
		if a.Name.Local == name {
			return a.Value, true
		}
	}
	return "", false
}

// child returns the first child of the given name, or nil.
func (e *element) child(name string) *element {
	for _, c := range e.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// each calls do for the element and all that it contains, in the file's order.
func (e *element) each(do func(*element)) {
	do(e)
	for _, c := range e.children {
		c.each(do)
	}
}

// parseElements reads a text into a tree of elements. Errors name the file and
// the line.
func parseElements(r io.Reader, file string) (root *element, err error) {
	limited := &io.LimitedReader{R: r, N: maxFileBytes + 1}
	decoder := xml.NewDecoder(limited)
	holder := &element{}
	open := []*element{holder}
	for count := 0; ; {
		token, err := decoder.Token()
		line, _ := decoder.InputPos()
		if limited.N <= 0 || count > maxElements || len(open) > maxDepth {
			return nil, fmt.Errorf("%s:%d: too large for a topology: want at most %d MiB, %d elements and %d levels", file, line, maxFileBytes>>20, maxElements, maxDepth)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.As(err, new(*fs.PathError)) {
			return nil, err
		}
		if err != nil {
			reason := err.Error()
			if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
				reason = syntax.Msg
			}
			return nil, fmt.Errorf("%s:%d: not XML: %s", file, line, reason)
		}
		switch t := token.(type) {
		case xml.StartElement:
			e := &element{name: t.Name.Local, line: line}
			for _, a := range t.Attr {
				if _, twice := e.attr(a.Name.Local); twice {
					return nil, fmt.Errorf("%s:%d: <%s> has %s twice", file, line, e.name, a.Name.Local)
				}
				e.attrs = append(e.attrs, a)
			}
			parent := open[len(open)-1]
			parent.children = append(parent.children, e)
			open = append(open, e)
			count++
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
	if len(holder.children) != 1 {
		return holder, nil
	}
	return holder.children[0], nil
}

// write prints the element and what it contains as NCCL does: two spaces a
// level, no prolog.
func (e *element) write(w *strings.Builder, indent string) {
	w.WriteString(indent + "<" + e.name)
	for _, a := range e.attrs {
		w.WriteString(" " + a.Name.Local + `="`)
		xml.EscapeText(w, []byte(a.Value)) //nolint:errcheck // a strings.Builder does not fail
		w.WriteString(`"`)
	}
	if len(e.children) == 0 {
		w.WriteString("/>\n")
		return
	}
	w.WriteString(">\n")
	for _, c := range e.children {
		c.write(w, indent+"  ")
	}
	w.WriteString(indent + "</" + e.name + ">\n")
}

// attributes reads the attributes of elements. The first fault is kept in err
// and the rest of the work is then void, which spares a check after every step.
type attributes struct {
	file string
	err  error
}

func (x *attributes) fail(line int, format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf("%s:%d: %s", x.file, line, fmt.Sprintf(format, args...))
	}
}

// text returns an attribute that must be there.
func (x *attributes) text(e *element, attr string) string {
	v, found := e.attr(attr)
	if !found {
		x.fail(e.line, "<%s> lacks %s", e.name, attr)
	}
	return v
}

// int returns an attribute that must be a whole number from lo to hi.
func (x *attributes) int(e *element, attr string, lo, hi int) int {
	v := x.text(e, attr)
	n, err := strconv.ParseInt(v, 0, 64)
	if err != nil || n < int64(lo) || n > int64(hi) {
		x.fail(e.line, "<%s> has %s=%q: want a whole number from %d to %d", e.name, attr, v, lo, hi)
		return lo
	}
	return int(n)
}

// intOr is int, but for an attribute that may be missing.
func (x *attributes) intOr(e *element, attr string, lo, hi, missing int) int {
	if _, found := e.attr(attr); !found {
		return missing
	}
	return x.int(e, attr, lo, hi)
}

// floatOr returns an attribute that is a number from lo to hi, or another where it
// is missing.
func (x *attributes) floatOr(e *element, attr string, lo, hi, missing float64) float64 {
	v, found := e.attr(attr)
	if !found {
		return missing
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f >= lo && f <= hi) {
		x.fail(e.line, "<%s> has %s=%q: want a number from %g to %g", e.name, attr, v, lo, hi)
		return lo
	}
	return f
}

// hex returns an attribute that is a number of at most 64 bits, in hexadecimal
// with or without 0x; 0 where it is missing.
func (x *attributes) hex(e *element, attr string) uint64 {
	v, found := e.attr(attr)
	if !found {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(v, "0x"), 16, 64)
	if err != nil {
		x.fail(e.line, "<%s> has %s=%q: want a hexadecimal number", e.name, attr, v)
	}
	return n
}

// busID returns an attribute that is a PCI bus id, 0000:1b:00.0, as the number
// that its digits make (NCCL 2.28.3, utils.cc, busIdToInt64).
func (x *attributes) busID(e *element, attr string) uint64 {
	v := x.text(e, attr)
	id, err := strconv.ParseUint(strings.NewReplacer(":", "", ".", "", "-", "").Replace(v), 16, 56)
	if err != nil {
		x.fail(e.line, "<%s> has %s=%q: want a PCI bus id, as in 0000:1b:00.0", e.name, attr, v)
	}
	return id
}
