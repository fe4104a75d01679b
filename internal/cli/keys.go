package cli

import (
	"fmt"
	"regexp"

	"github.com/nats-io/nuid"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/tacho-bench/tacho/internal/cluster"
)

func newKeys(env *Env) *cobra.Command {
	var secret string
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Print new keys for a run on Kubernetes as Helm values or as a secret",
		Long: `keys prints a new token for NATS, a new key for the coordinator, the public half of
that key (trust), and the fingerprint of the coordinator's TLS certificate (pin). The
output is a values file of the Helm chart in deploy/helm/tacho, or with --secret a
manifest for keys.existingSecret of the chart. Treat it as a secret.`,
		Example: `  tacho keys > keys.yaml
  helm install night deploy/helm/tacho -f keys.yaml -f my-values.yaml
  tacho keys --secret night-keys | kubectl apply -f -`,
		Args: flagsOnly,
		RunE: func(*cobra.Command, []string) error {
			if secret != "" && !objectName.MatchString(secret) {
				return usage(fmt.Errorf("--secret: %q is no name of an object in Kubernetes: use lower case letters, digits and -", secret))
			}
			identity, err := cluster.NewIdentity()
			if err != nil {
				return err
			}
			seed, err := identity.Seed()
			if err != nil {
				return err
			}
			token, trust, pin := nuid.Next(), identity.Public(), identity.Pin()
			values := map[string]any{
				"keys": map[string]string{"natsToken": token, "coordinatorSeed": string(seed), "trust": trust, "pin": pin},
			}
			if secret != "" {
				values = map[string]any{
					"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"name": secret}, "type": "Opaque",
					"stringData": map[string]string{"nats-token": token, "coordinator.nk": string(seed), "trust": trust, "pin": pin},
				}
			}
			return yaml.NewEncoder(env.Stdout).Encode(values)
		},
	}
	cmd.Flags().StringVar(&secret, "secret", "", "print a Kubernetes secret with this name")
	return cmd
}

// objectName matches the names that Kubernetes accepts for a secret.
var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
