package cli

import (
	"github.com/nats-io/nuid"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"tacho/cluster"
)

func newKeys(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "keys",
		Short: "Print new keys for a run on Kubernetes, as values of the Helm chart",
		Long: `keys prints a new token for NATS, a new key for the coordinator, and the public
half of that key, by which agents know their coordinator. The output is a values
file of the Helm chart in deploy/helm/tacho. Treat it as a secret.`,
		Example: `  tacho keys > keys.yaml
  helm install night deploy/helm/tacho -f keys.yaml -f my-values.yaml`,
		Args: flagsOnly,
		RunE: func(*cobra.Command, []string) error {
			identity, err := cluster.NewIdentity()
			if err != nil {
				return err
			}
			seed, err := identity.Seed()
			if err != nil {
				return err
			}
			return yaml.NewEncoder(env.Stdout).Encode(map[string]any{
				"keys": map[string]string{"natsToken": nuid.Next(), "coordinatorSeed": string(seed), "trust": identity.Public()},
			})
		},
	}
}
