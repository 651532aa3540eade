// Package xmltree reads the XML files that NCCL writes and reads, machines and
// graphs, as trees of elements that know their line, so that every fault can be
// told with its place. Size, count and depth are limited.
package xmltree

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

// Element is an XML element with the line that it starts on.
type Element struct {
	Name     string
	Attrs    []xml.Attr
	Children []*Element
	Line     int
}

// New returns an element with the given attributes, as names and values in turn.
func New(name string, attrs ...string) *Element {
	e := &Element{Name: name}
	for i := 0; i < len(attrs); i += 2 {
		e.Attrs = append(e.Attrs, xml.Attr{Name: xml.Name{Local: attrs[i]}, Value: attrs[i+1]})
	}
	return e
}

// Add appends a child and returns it.
func (e *Element) Add(child *Element) *Element {
	e.Children = append(e.Children, child)
	return child
}

// Attr returns the value of an attribute.
func (e *Element) Attr(name string) (value string, found bool) {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value, true
		}
	}
	return "", false
}

// Set gives an attribute a value.
func (e *Element) Set(name, value string) {
	for i, a := range e.Attrs {
		if a.Name.Local == name {
			e.Attrs[i].Value = value
			return
		}
	}
	e.Attrs = append(e.Attrs, xml.Attr{Name: xml.Name{Local: name}, Value: value})
}

// Child returns the first child of the given name, or nil.
func (e *Element) Child(name string) *Element {
	for _, c := range e.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Each calls do for the element and all that it contains, in the file's order.
func (e *Element) Each(do func(*Element)) {
	do(e)
	for _, c := range e.Children {
		c.Each(do)
	}
}

// Parse reads a text with a root element of the given name, which is what kind of
// file stands at the top of. Errors name the file and the line.
func Parse(r io.Reader, file, kind, root string) (*Element, error) {
	limited := &io.LimitedReader{R: r, N: maxFileBytes + 1}
	decoder := xml.NewDecoder(limited)
	holder := &Element{}
	open := []*Element{holder}
	for count := 0; ; {
		token, err := decoder.Token()
		line, _ := decoder.InputPos()
		if limited.N <= 0 || count > maxElements || len(open) > maxDepth {
			return nil, fmt.Errorf("%s:%d: too large for an NCCL %s: want at most %d MiB, %d elements and %d levels", file, line, kind, maxFileBytes>>20, maxElements, maxDepth)
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
			e := &Element{Name: t.Name.Local, Line: line}
			for _, a := range t.Attr {
				if _, twice := e.Attr(a.Name.Local); twice {
					return nil, fmt.Errorf("%s:%d: <%s> has %s twice", file, line, e.Name, a.Name.Local)
				}
				e.Attrs = append(e.Attrs, a)
			}
			parent := open[len(open)-1]
			parent.Children = append(parent.Children, e)
			open = append(open, e)
			count++
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
	if len(holder.Children) != 1 || holder.Children[0].Name != root {
		return nil, fmt.Errorf("%s: not an NCCL %s: want one <%s> element at the top", file, kind, root)
	}
	return holder.Children[0], nil
}

// Write writes the element and what it contains as NCCL does: two spaces a level,
// no prolog.
func (e *Element) Write(w io.Writer) error {
	var text strings.Builder
	e.write(&text, "")
	_, err := io.WriteString(w, text.String())
	return err
}

func (e *Element) write(w *strings.Builder, indent string) {
	w.WriteString(indent + "<" + e.Name)
	for _, a := range e.Attrs {
		w.WriteString(" " + a.Name.Local + `="`)
		xml.EscapeText(w, []byte(a.Value)) //nolint:errcheck // a strings.Builder does not fail
		w.WriteString(`"`)
	}
	if len(e.Children) == 0 {
		w.WriteString("/>\n")
		return
	}
	w.WriteString(">\n")
	for _, c := range e.Children {
		c.write(w, indent+"  ")
	}
	w.WriteString(indent + "</" + e.Name + ">\n")
}

// Reader reads the attributes of elements. The first fault is kept in Err and the
// rest of the work is then void, which spares a check after every step.
type Reader struct {
	File string
	Err  error
}

// Fail notes a fault in the given line.
func (x *Reader) Fail(line int, format string, args ...any) {
	if x.Err == nil {
		x.Err = fmt.Errorf("%s:%d: %s", x.File, line, fmt.Sprintf(format, args...))
	}
}

// Text returns an attribute that must be there.
func (x *Reader) Text(e *Element, attr string) string {
	v, found := e.Attr(attr)
	if !found {
		x.Fail(e.Line, "<%s> lacks %s", e.Name, attr)
	}
	return v
}

// Int returns an attribute that must be a whole number from lo to hi.
func (x *Reader) Int(e *Element, attr string, lo, hi int) int {
	v := x.Text(e, attr)
	n, err := strconv.ParseInt(v, 0, 64)
	if err != nil || n < int64(lo) || n > int64(hi) {
		x.Fail(e.Line, "<%s> has %s=%q: want a whole number from %d to %d", e.Name, attr, v, lo, hi)
		return lo
	}
	return int(n)
}

// IntOr is Int, but for an attribute that may be missing.
func (x *Reader) IntOr(e *Element, attr string, lo, hi, missing int) int {
	if _, found := e.Attr(attr); !found {
		return missing
	}
	return x.Int(e, attr, lo, hi)
}

// FloatOr returns an attribute that is a number from lo to hi, or another where it
// is missing.
func (x *Reader) FloatOr(e *Element, attr string, lo, hi, missing float64) float64 {
	v, found := e.Attr(attr)
	if !found {
		return missing
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f >= lo && f <= hi) {
		x.Fail(e.Line, "<%s> has %s=%q: want a number from %g to %g", e.Name, attr, v, lo, hi)
		return lo
	}
	return f
}

// Hex returns an attribute that is a number of at most 64 bits, in hexadecimal
// with or without 0x; 0 where it is missing.
func (x *Reader) Hex(e *Element, attr string) uint64 {
	v, found := e.Attr(attr)
	if !found {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(v, "0x"), 16, 64)
	if err != nil {
		x.Fail(e.Line, "<%s> has %s=%q: want a hexadecimal number", e.Name, attr, v)
	}
	return n
}
