package cli

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nuid"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"tacho/cluster"
	"tacho/internal/redact"
	"tacho/kube"
	"tacho/plan"
	"tacho/ui"
)

// k8sFlags are what k8s is told besides the plan.
type k8sFlags struct {
	kube.Options
	nodes  []string
	values bool
}

func newK8s(env *Env) *cobra.Command {
	p := plan.Default()
	f := &k8sFlags{}
	cmd := &cobra.Command{
		Use:   "k8s --agents N [flags of bench]",
		Short: "Print the manifests that run a benchmark on Kubernetes, from many pods",
		Long: `k8s prints manifests for kubectl: an Indexed Job of agents, a Job with the
coordinator, which carries NATS along, a claim for the results, and a secret with
new keys for this run. It takes the flags of bench, and talks to nobody.

The output holds the keys of the run: treat it as a secret.`,
		Example: `  tacho k8s --agents 32 --image registry.example.com/tacho:1.0 --base-url http://vllm:8000 --request-rate 2000 --max-seconds 120 | kubectl apply -f -
  tacho k8s --agents 8 --image tacho:1.0 --base-url http://vllm:8000 --name night --namespace bench --agent-cpus 4
  tacho k8s --values > keys.yaml`,
		Args: flagsOnly,
		RunE: func(*cobra.Command, []string) error { return f.write(env, &p) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.Image, "image", "", "image that has tacho, as registry.example.com/tacho:1.0")
	fs.StringVar(&f.Name, "name", "tacho", "begins the names of all objects; take another for each run")
	fs.StringVar(&f.Namespace, "namespace", "", "namespace of the objects (default: that of kubectl)")
	fs.StringVar(&f.CPUs, "agent-cpus", "2", "processors of an agent; a whole number gives it cores of its own, where the nodes pin them")
	fs.StringVar(&f.Memory, "agent-memory", "4Gi", "memory of an agent")
	fs.StringArrayVar(&f.Allow, "allow-target", nil, "server that agents may send to (default: those of --base-url)")
	fs.StringVar(&f.Claim, "results-claim", "", "existing claim for the results")
	fs.StringVar(&f.Size, "results-size", "10Gi", "size of the claim that is made otherwise; 0 makes none, and results go with the pod")
	fs.StringVar(&f.Data, "data-claim", "", "existing claim with datasets and tokenizers; agents and coordinator see it at /data")
	fs.StringVar(&f.KeySecret, "api-key-secret", "", "existing secret that holds the key of the server, under api-key")
	fs.StringArrayVar(&f.nodes, "node-selector", nil, "label of the nodes to run on, as NAME=VALUE; may be repeated")
	fs.StringArrayVar(&f.PullSecrets, "image-pull-secret", nil, "existing secret for the image; may be repeated")
	fs.BoolVar(&f.values, "values", false, "print new keys as values of the Helm chart, and nothing else")
	bind(fs, &p)
	return cmd
}

func (f *k8sFlags) write(env *Env, p *plan.Plan) error {
	if err := f.keys(); err != nil {
		return err
	}
	if f.values {
		return yaml.NewEncoder(env.Stdout).Encode(map[string]any{"keys": map[string]string{"natsToken": f.Token, "coordinatorSeed": f.Seed, "trust": f.Trust}})
	}
	if err := f.read(p); err != nil {
		return usage(err)
	}
	if err := f.Check(); err != nil {
		return usage(err)
	}
	return f.Write(env.Stdout)
}

// keys makes the secrets of one run.
func (f *k8sFlags) keys() error {
	identity, err := cluster.NewIdentity()
	if err != nil {
		return err
	}
	seed, err := identity.Seed()
	f.Seed, f.Trust, f.Token = string(seed), identity.Public(), nuid.Next()
	return err
}

// ours are options of bench that the manifests set themselves.
var ours = []string{"agents", "runs-dir"}

// read takes from the plan what the manifests are made of.
func (f *k8sFlags) read(p *plan.Plan) error {
	if len(p.BaseURL) == 0 {
		return errors.New("name the server as pods reach it: --base-url http://vllm:8000")
	}
	for _, name := range []string{"local", "nats", "nats-listen", "nats-token", "nats-creds", "nats-nkey"} {
		if p.Given(name) {
			return fmt.Errorf("--%s: the coordinator carries NATS along, with keys of its own: leave it out", name)
		}
	}
	if err := f.reach(p); err != nil {
		return err
	}
	f.Agents = p.Agents
	if len(f.Allow) == 0 {
		f.Allow = p.BaseURLs()
	}
	f.NodePool = map[string]string{}
	for _, pair := range f.nodes {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("--node-selector %q: write NAME=VALUE", pair)
		}
		f.NodePool[name] = value
	}
	for _, o := range p.Options() {
		if !o.Given() || slices.Contains(ours, o.Name) {
			continue
		}
		if o.Secret == redact.InAll {
			return fmt.Errorf("--%s would stand in the manifest for all to read: put it into a secret, and name that with --api-key-secret", o.Name)
		}
		if list, is := o.Value.(*[]string); is {
			for _, value := range *list {
				f.Bench = append(f.Bench, "--"+o.Name+"="+value)
			}
			continue
		}
		f.Bench = append(f.Bench, "--"+o.Name+"="+o.Text())
	}
	return nil
}

// reach says what pods would not find of what the plan names.
func (f *k8sFlags) reach(p *plan.Plan) error {
	for _, base := range p.BaseURLs() {
		u, err := url.Parse(base)
		if err == nil && (u.Scheme == "unix" || ui.Loopback(u.Hostname())) {
			return fmt.Errorf("--base-url %s: to a pod that is the pod itself: name the server as pods reach it, as http://vllm:8000", redact.URL(base))
		}
	}
	for _, o := range p.Options() {
		path := o.Text()
		if !slices.Contains([]string{"dataset-path", "tokenizer"}, o.Name) || path == "" {
			continue
		}
		_, missing := os.Stat(path)
		switch inClaim := strings.HasPrefix(path, "/data/"); {
		case inClaim && f.Data == "":
			return fmt.Errorf("--%s %s: name the claim that is shown there with --data-claim", o.Name, path)
		case missing == nil && !inClaim && !filepath.IsAbs(path):
			return fmt.Errorf("--%s %s is on this machine, and pods do not have it: put it into a claim, name that with --data-claim, and write /data/%s", o.Name, path, filepath.Base(path))
		}
	}
	return nil
}
