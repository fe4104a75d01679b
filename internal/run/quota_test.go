package run

import (
	"testing"
	"testing/fstest"
	"time"
)

// TestQuota reads quotas as Docker and Kubernetes set them, for both versions
// of control groups.
func TestQuota(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  quota
	}{
		"none": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.stat": "usage_usec 5\n"}, quota{}},
		"version 2, in a container": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n",
			"sys/fs/cgroup/cpu.stat": "usage_usec 1\nnr_throttled 7\nthrottled_usec 2500000\n",
		}, quota{0.5, 2500 * time.Millisecond}},
		"version 2, the pod above has the tighter one": {map[string]string{
			"proc/self/cgroup": "0::/pod/container\n", "sys/fs/cgroup/pod/container/cpu.max": "max 100000\n",
			"sys/fs/cgroup/pod/cpu.max": "200000 100000\n", "sys/fs/cgroup/pod/cpu.stat": "throttled_usec 1000\n",
		}, quota{2, time.Millisecond}},
		"version 1": {map[string]string{
			"proc/self/cgroup": "5:memory:/x\n3:cpu,cpuacct:/x\n", "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "8000\n",
			"sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000\n", "sys/fs/cgroup/cpu,cpuacct/x/cpu.stat": "nr_periods 9\nthrottled_time 3000000000\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
		}, quota{0.08, 3 * time.Second}},
		"no control groups": {nil, quota{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := fstest.MapFS{}
			for file, text := range c.files {
				root[file] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := quotaIn(root); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
