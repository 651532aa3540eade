package rows

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

// Read reads rows in any form that is known, told by its first lines: our CSV
// ([ReadCSV]), the log of a program of nccl-tests ([ReadNCCLTests]), or a table
// by series ([ReadSeries]). What the last two do not say is as in like.
func Read(r io.Reader, name string, like Row) ([]Row, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		switch {
		case strings.HasPrefix(line, strings.Join(header[:3], ",")):
			return ReadCSV(bytes.NewReader(text), name)
		case strings.HasPrefix(line, strings.Join(seriesHeader[:3], ",")):
			return ReadSeries(bytes.NewReader(text), name, like)
		case strings.HasPrefix(line, "# nThread") || strings.HasPrefix(line, "# nccl-tests"):
			return ReadNCCLTests(bytes.NewReader(text), name, like)
		}
	}
	return nil, fmt.Errorf("%s: not measured rows: want CSV with the header %s, or the log of a program of nccl-tests", name, strings.Join(header, ","))
}

// ReadFiles reads the rows of several files. It fails for one without rows.
func ReadFiles(names []string, like Row) (all []Row, err error) {
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		list, err := Read(f, name, like)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("%s: no rows below the header", name)
		}
		all = append(all, list...)
	}
	return all, nil
}
