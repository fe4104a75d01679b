// Package check validates manifests against the types of the Kubernetes API. A field with
// an unknown name or the wrong type is an error.
package check

import (
	"bytes"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// Objects parses all documents of a text and counts them by kind.
func Objects(text []byte) (map[string]int, error) {
	kinds := map[string]int{}
	for _, doc := range bytes.Split(text, []byte("\n---\n")) {
		var head struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}
		if len(bytes.TrimSpace(bytes.TrimPrefix(doc, []byte("---")))) == 0 {
			continue
		}
		if err := yaml.Unmarshal(doc, &head); err != nil {
			return nil, err
		}
		into, err := object(head.APIVersion, head.Kind)
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(doc, into); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", head.Kind, err, doc)
		}
		kinds[head.Kind]++
	}
	return kinds, nil
}

func object(version, kind string) (any, error) {
	switch version + " " + kind {
	case "v1 Secret":
		return &corev1.Secret{}, nil
	case "v1 Service":
		return &corev1.Service{}, nil
	case "v1 PersistentVolumeClaim":
		return &corev1.PersistentVolumeClaim{}, nil
	case "batch/v1 Job":
		return &batchv1.Job{}, nil
	case "v1 Pod":
		return &corev1.Pod{}, nil
	case "networking.k8s.io/v1 NetworkPolicy":
		return &networkingv1.NetworkPolicy{}, nil
	}
	return nil, fmt.Errorf("unexpected kind %s of %s", kind, version)
}
