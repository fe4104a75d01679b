package instrument

import (
	"context"
	"net/http"
	"regexp"
	"strings"
)

var labelPairs = regexp.MustCompile(`(\w+)="([^"\\]*)"`)

// Describe reads the constant data on pages: the settings of servers, by page, and
// the number of GPUs of each name.
func Describe(ctx context.Context, client *http.Client, targets []Target) (settings map[string]map[string]string, gpus map[string]int) {
	settings, gpus = map[string]map[string]string{}, map[string]int{}
	seen := map[string]bool{}
	for _, t := range targets {
		page, err := get(ctx, client, t)
		if err != nil {
			continue
		}
		settings[t.URL] = map[string]string{}
		_ = parse(page, func(r reading) { // a page that cannot be parsed adds nothing
			if strings.HasSuffix(r.name, "_config_info") {
				for _, pair := range labelPairs.FindAllStringSubmatch(r.labels, -1) {
					settings[t.URL][pair[1]] = pair[2]
				}
			}
			if name, id := r.label("modelName"), r.label("UUID"); name != "" && !seen[id] {
				seen[id] = true
				gpus[name]++
			}
		})
	}
	return settings, gpus
}
