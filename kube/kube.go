// Package kube writes the manifests that place a run on Kubernetes: agents as an
// Indexed Job, and a coordinator that carries NATS with it.
package kube

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Options say what to run, and where.
type Options struct {
	Name      string // of everything; begins the names of the objects
	Namespace string // empty is the one of whoever applies it
	Image     string
	Agents    int
	CPUs      string // of an agent: a whole number gives it cores of its own, where the node pins them
	Memory    string // of an agent

	Bench []string // flags of tacho bench
	Allow []string // targets

	Token, Seed, Trust string // of NATS, of the coordinator's key, and its public half

	Claim       string // an existing claim for the results; empty makes one of Size
	Size        string // 0 keeps results only as long as the coordinator's pod
	Data        string // claim with datasets and tokenizers, mounted at /data; may be empty
	KeySecret   string // secret with the key of the server under test, under api-key; may be empty
	NodePool    map[string]string
	PullSecrets []string
}

const (
	natsPort = 4222
	nobody   = 65532 // as the image runs
	runsDir  = "/runs"
	dataDir  = "/data"

	placeWait = "600" // seconds until all pods have a node and their image

	killed, terminated = 137, 143 // codes of whoever was ended by a signal
)

var (
	aName     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$`)
	aQuantity = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(m|[kMGTPE]i?)?$`)
	nothing   = regexp.MustCompile(`^[0.]+[a-zA-Z]*$`) // of a quantity
)

// Check says what is wrong with the options.
func (o *Options) Check() error {
	switch {
	case !aName.MatchString(o.Name):
		return fmt.Errorf("--name %q: take small letters, digits and dashes, at most 52", o.Name)
	case o.Namespace != "" && !aName.MatchString(o.Namespace):
		return fmt.Errorf("--namespace %q: take small letters, digits and dashes", o.Namespace)
	case o.Agents < 1:
		return fmt.Errorf("--agents: say how many machines send, as --agents 8")
	case o.Image == "":
		return fmt.Errorf("--image: name the image, as registry.example.com/tacho:1.0")
	case strings.ContainsFunc(o.Image, unicode.IsSpace):
		return fmt.Errorf("--image %q: an image has no blank in its name; write it as registry.example.com/tacho:1.0", o.Image)
	case nothing.MatchString(o.CPUs):
		return fmt.Errorf("--agent-cpus %s: an agent needs some, as 2 or 500m", o.CPUs)
	case nothing.MatchString(o.Memory):
		return fmt.Errorf("--agent-memory %s: an agent needs some, as 4Gi", o.Memory)
	}
	for flag, value := range map[string]string{"--agent-cpus": o.CPUs, "--agent-memory": o.Memory, "--results-size": o.Size} {
		if !aQuantity.MatchString(value) {
			return fmt.Errorf("%s %q: write a quantity as Kubernetes does, as 4, 500m or 8Gi", flag, value)
		}
	}
	return nil
}

type object = map[string]any

// Write writes all objects as YAML.
func (o *Options) Write(w io.Writer) error {
	if err := o.Check(); err != nil {
		return err
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	for _, obj := range o.Objects() {
		if err := enc.Encode(obj); err != nil {
			return err
		}
	}
	return enc.Close()
}

// Objects are all of them, in the order in which they are made.
func (o *Options) Objects() []map[string]any {
	out := []map[string]any{o.secret(), o.service()}
	if o.Claim == "" && o.Size != "0" {
		out = append(out, o.claim())
	}
	return append(out, o.coordinator(), o.agents())
}

func (o *Options) head(api, kind, name, part string) object {
	meta := object{"name": name, "labels": o.labels(part)}
	if o.Namespace != "" {
		meta["namespace"] = o.Namespace
	}
	return object{"apiVersion": api, "kind": kind, "metadata": meta}
}

func (o *Options) labels(part string) object {
	return object{"app.kubernetes.io/name": "tacho", "app.kubernetes.io/instance": o.Name, "app.kubernetes.io/component": part}
}

func (o *Options) secretName() string { return o.Name + "-keys" }
func (o *Options) claimName() string  { return cmp.Or(o.Claim, o.Name+"-runs") }

// secret has the token of NATS and the key that the coordinator signs with.
func (o *Options) secret() object {
	s := o.head("v1", "Secret", o.secretName(), "coordinator")
	s["type"], s["stringData"] = "Opaque", object{"nats-token": o.Token, "coordinator.nk": o.Seed}
	return s
}

// service is the name under which agents find NATS. It is there before the
// coordinator is ready, for agents wait for it.
func (o *Options) service() object {
	s := o.head("v1", "Service", o.Name+"-nats", "coordinator")
	s["spec"] = object{
		"clusterIP": "None", "publishNotReadyAddresses": true, "selector": o.labels("coordinator"),
		"ports": []object{{"name": "nats", "port": natsPort}},
	}
	return s
}

func (o *Options) claim() object {
	c := o.head("v1", "PersistentVolumeClaim", o.claimName(), "coordinator")
	c["spec"] = object{"accessModes": []string{"ReadWriteOnce"}, "resources": object{"requests": object{"storage": o.Size}}}
	return c
}

func (o *Options) coordinator() object {
	args := []string{
		"bench", "--agents", strconv.Itoa(o.Agents), "--agent-wait", placeWait, "--runs-dir", runsDir + "/" + o.Name, "--resume", "last", "--nats-listen", "0.0.0.0:" + strconv.Itoa(natsPort),
	}
	env := []object{o.token(), {"name": "XDG_CONFIG_HOME", "value": "/etc"}}
	if o.KeySecret != "" {
		env = append(env, object{"name": "OPENAI_API_KEY", "valueFrom": object{"secretKeyRef": object{"name": o.KeySecret, "key": "api-key"}}})
	}
	runs := object{"name": "runs", "emptyDir": object{}}
	if o.Claim != "" || o.Size != "0" {
		runs = object{"name": "runs", "persistentVolumeClaim": object{"claimName": o.claimName()}}
	}
	keys := object{"name": "keys", "secret": object{
		"secretName": o.secretName(), "defaultMode": 0o440, "items": []object{{"key": "coordinator.nk", "path": "coordinator.nk"}},
	}}
	container := o.container("coordinator", append(args, o.Bench...), env, "2", "2Gi")
	container["volumeMounts"] = []object{{"name": "runs", "mountPath": runsDir}, {"name": "keys", "mountPath": "/etc/tacho", "readOnly": true}, {"name": "tmp", "mountPath": "/tmp"}}
	container["ports"] = []object{{"name": "nats", "containerPort": natsPort}}
	job := o.head("batch/v1", "Job", o.Name+"-coordinator", "coordinator")
	job["spec"] = object{"backoffLimit": 3, "podFailurePolicy": failurePolicy(), "template": o.pod("coordinator", "Never", container, runs, keys)}
	return job
}

// failurePolicy has the coordinator started again when it was killed, or its node
// is taken away: it goes on with its run. What it ended with itself would only come
// out once more.
func failurePolicy() object {
	return object{"rules": []object{
		{"action": "Ignore", "onPodConditions": []object{{"type": "DisruptionTarget", "status": "True"}}},
		{"action": "FailJob", "onExitCodes": object{"containerName": "coordinator", "operator": "NotIn", "values": []int{killed, terminated}}},
	}}
}

// agents each take their number from the Job, so that a pod that is made anew
// has the name of the one before. A container that dies is started again in its
// pod, where its spool is, and hands over what it had finished.
func (o *Options) agents() object {
	args := []string{"agent", "--join", "nats://" + o.Name + "-nats:" + strconv.Itoa(natsPort), "--join-wait", placeWait, "--once", "--name", o.Name + "-$(JOB_COMPLETION_INDEX)", "--trust", o.Trust, "--spool", "/spool"}
	for _, target := range o.Allow {
		args = append(args, "--allow-target", target)
	}
	container := o.container("agent", args, []object{o.token()}, o.CPUs, o.Memory)
	container["volumeMounts"] = []object{{"name": "spool", "mountPath": "/spool"}, {"name": "tmp", "mountPath": "/tmp"}}
	pod := o.pod("agent", "OnFailure", container, object{"name": "spool", "emptyDir": object{}})
	spec, _ := pod["spec"].(object) // as pod made it
	spec["topologySpreadConstraints"] = []object{{
		"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": object{"matchLabels": o.labels("agent")},
	}}
	spec["affinity"] = object{"podAntiAffinity": object{"preferredDuringSchedulingIgnoredDuringExecution": []object{{
		"weight": 100, "podAffinityTerm": object{"topologyKey": "kubernetes.io/hostname", "labelSelector": object{"matchExpressions": []object{
			{"key": "app.kubernetes.io/name", "operator": "In", "values": []string{"tacho"}},
		}}},
	}}}}
	job := o.head("batch/v1", "Job", o.Name+"-agents", "agent")
	job["spec"] = object{"completions": o.Agents, "parallelism": o.Agents, "completionMode": "Indexed", "backoffLimit": o.Agents, "template": pod}
	return job
}

func (o *Options) token() object {
	return object{"name": "TACHO_NATS_TOKEN", "valueFrom": object{"secretKeyRef": object{"name": o.secretName(), "key": "nats-token"}}}
}

// container asks for exactly what it may use: a pod whose containers all do is
// the last to be disturbed, and has cores of its own where the node pins them.
func (o *Options) container(name string, args []string, env []object, cpus, memory string) object {
	amount := object{"cpu": cpus, "memory": memory}
	return object{
		"name": name, "image": o.Image, "args": args, "env": env, "resources": object{"requests": amount, "limits": amount},
		"securityContext": object{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": object{"drop": []string{"ALL"}}},
	}
}

func (o *Options) pod(part, restart string, container object, volumes ...object) object {
	volumes = append(volumes, object{"name": "tmp", "emptyDir": object{}})
	if o.Data != "" {
		volumes = append(volumes, object{"name": "data", "persistentVolumeClaim": object{"claimName": o.Data, "readOnly": true}})
		mounts, _ := container["volumeMounts"].([]object) // as its maker wrote them
		container["volumeMounts"] = append(mounts, object{"name": "data", "mountPath": dataDir, "readOnly": true})
	}
	spec := object{
		"restartPolicy": restart, "automountServiceAccountToken": false, "containers": []object{container}, "volumes": volumes,
		"securityContext": object{"runAsNonRoot": true, "runAsUser": nobody, "runAsGroup": nobody, "fsGroup": nobody, "seccompProfile": object{"type": "RuntimeDefault"}},
	}
	if len(o.NodePool) > 0 {
		spec["nodeSelector"] = o.NodePool
	}
	var pull []object
	for _, name := range o.PullSecrets {
		pull = append(pull, object{"name": name})
	}
	if pull != nil {
		spec["imagePullSecrets"] = pull
	}
	return object{"metadata": object{"labels": o.labels(part)}, "spec": spec}
}
