package run

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// A quota is the CPU quota of the process and the time the process was
// throttled. Go's runtime metrics do not show it: a container with half a core
// looks like a machine that is stopped half of the time.
type quota struct {
	cores     float64 // 0 means no quota
	throttled time.Duration
}

// readQuota returns the lowest quota of the process's control group and all
// parent groups. It is zero on systems without control groups.
func readQuota() quota { return quotaIn(os.DirFS("/")) }

func quotaIn(root fs.FS) (tightest quota) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return quota{}
	}
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(fields) != 3 {
			continue
		}
		read := quotaV1
		mounts := []string{"sys/fs/cgroup/" + fields[1], "sys/fs/cgroup/cpu"}
		switch {
		case fields[1] == "":
			read, mounts = quotaV2, []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"}
		case !strings.Contains(","+fields[1]+",", ",cpu,"):
			continue
		}
		for _, mount := range mounts {
			for dir := path.Join(mount, fields[2]); strings.HasPrefix(dir, mount); dir = path.Dir(dir) {
				if q := read(root, dir); q.cores > 0 && (tightest.cores == 0 || q.cores < tightest.cores) {
					tightest = q
				}
			}
		}
	}
	return tightest
}

// quotaV2 reads cpu.max ("50000 100000", or "max 100000") and cpu.stat.
func quotaV2(root fs.FS, dir string) (q quota) {
	limit, err := fs.ReadFile(root, path.Join(dir, "cpu.max"))
	if err != nil {
		return q
	}
	if fields := strings.Fields(string(limit)); len(fields) == 2 {
		q.cores = coresOf(fields[0], fields[1])
	}
	q.throttled = time.Duration(statOf(root, dir, "throttled_usec")) * time.Microsecond
	return q
}

// quotaV1 reads cpu.cfs_quota_us, which is -1 without a quota, cpu.cfs_period_us and
// cpu.stat.
func quotaV1(root fs.FS, dir string) (q quota) {
	limit, err := fs.ReadFile(root, path.Join(dir, "cpu.cfs_quota_us"))
	period, bad := fs.ReadFile(root, path.Join(dir, "cpu.cfs_period_us"))
	if err != nil || bad != nil {
		return q
	}
	q.cores = coresOf(strings.TrimSpace(string(limit)), strings.TrimSpace(string(period)))
	q.throttled = time.Duration(statOf(root, dir, "throttled_time"))
	return q
}

// coresOf returns the quota divided by its period, or 0 if there is no quota.
func coresOf(limit, period string) float64 {
	of, err := strconv.ParseFloat(limit, 64)
	in, bad := strconv.ParseFloat(period, 64)
	if err != nil || bad != nil || of <= 0 || in <= 0 {
		return 0
	}
	return of / in
}

// statOf returns a value of the group's cpu.stat, or 0 if it is missing.
func statOf(root fs.FS, dir, name string) int64 {
	page, err := fs.ReadFile(root, path.Join(dir, "cpu.stat"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(page)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == name {
			n, _ := strconv.ParseInt(value, 10, 64) // 0 if invalid
			return n
		}
	}
	return 0
}
