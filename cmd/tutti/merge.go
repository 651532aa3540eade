package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

func newMerge() *cobra.Command {
	return &cobra.Command{
		Use:   "merge FILE.csv...",
		Short: "Put the parts of a sharded study together",
		Long: `Put the CSV files that the shards of a study wrote together, in the order of the
whole study if the files come in that of the shards. Columns must be the same.`,
		Example: `  tutti sim --nodes 1,2,4,8 --csv --shard 0/2 > 0.csv
  tutti sim --nodes 1,2,4,8 --csv --shard 1/2 > 1.csv
  tutti merge 0.csv 1.csv > all.csv`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, paths []string) error {
			text, err := mergeCSV(paths)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprint(c.OutOrStdout(), text); err != nil {
				return fmt.Errorf("writing the results: %w", err)
			}
			return nil
		},
	}
}

// mergeCSV deals the lines of files out in turns, below the header that all have,
// as shards took them.
func mergeCSV(paths []string) (string, error) {
	header, parts := "", make([][]string, len(paths))
	for i, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return "", err
		}
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if line := lines.Text(); line != "" && !strings.HasPrefix(line, "#") {
				parts[i] = append(parts[i], line)
			}
		}
		_ = file.Close() // it was read only
		switch {
		case lines.Err() != nil:
			return "", fmt.Errorf("%s: %w", path, lines.Err())
		case len(parts[i]) == 0:
			return "", fmt.Errorf("%s: empty: want the CSV of tutti sim --csv; did that shard fail?", path)
		case !strings.HasPrefix(parts[i][0], "source,machine,"):
			return "", fmt.Errorf("%s:1: want the header source,machine,…", path)
		case header == "":
			header = parts[i][0]
		case header != parts[i][0]:
			return "", fmt.Errorf("%s:1: other columns than in %s: want the shards of one study", path, paths[0])
		}
	}
	var all strings.Builder
	all.WriteString(header + "\n")
	for row, more := 1, true; more; row++ {
		more = false
		for _, part := range parts {
			if row < len(part) {
				all.WriteString(part[row] + "\n")
				more = true
			}
		}
	}
	return all.String(), nil
}
