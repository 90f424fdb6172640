package e2e

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"robotsgate/internal/gatetest"
)

// manifests returns the documents of a file in deploy/ by kind and name.
func manifests(t *testing.T, file string) map[string]manifest {
	t.Helper()
	all := map[string]manifest{}
	dec := yaml.NewDecoder(strings.NewReader(gatetest.Read(t, "../../deploy/"+file)))
	for {
		var m manifest
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all[m.Kind+" "+m.Metadata.Name] = m
	}
}

// A manifest has the members that the tests read.
type manifest struct {
	Kind     string
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Type string
	Data map[string]string
	Spec struct {
		Replicas       int
		MaxUnavailable int                                        `yaml:"maxUnavailable"`
		Claims         []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
		Selector       yaml.Node
		Ports          []struct {
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     pod
		}
		PodSelector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		} `yaml:"podSelector"`
		PolicyTypes []string `yaml:"policyTypes"`
		Ingress     []struct {
			From  []peer
			Ports []struct{ Port int }
		}
		Egress []struct {
			To []struct {
				PodSelector labels `yaml:"podSelector"`
				IPBlock     struct {
					CIDR   string
					Except []string
				} `yaml:"ipBlock"`
			}
			Ports []struct{ Port int }
		}
	}
}

type labels struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

// A peer may connect to the pods of a NetworkPolicy.
type peer struct {
	PodSelector labels `yaml:"podSelector"`
}

type pod struct {
	Spread []struct {
		TopologyKey   string `yaml:"topologyKey"`
		LabelSelector labels `yaml:"labelSelector"`
	} `yaml:"topologySpreadConstraints"`
	Grace    int `yaml:"terminationGracePeriodSeconds"`
	Security struct {
		RunAsNonRoot bool `yaml:"runAsNonRoot"`
		RunAsUser    int  `yaml:"runAsUser"`
		RunAsGroup   int  `yaml:"runAsGroup"`
		FSGroup      int  `yaml:"fsGroup"`
	} `yaml:"securityContext"`
	Containers []struct {
		Image   string
		Command []string
		Args    []string
		Env     []struct {
			Name      string
			ValueFrom struct {
				SecretKeyRef struct{ Name, Key string } `yaml:"secretKeyRef"`
			} `yaml:"valueFrom"`
		}
		Ports []struct {
			Name          string
			ContainerPort int `yaml:"containerPort"`
		}
		Readiness probe `yaml:"readinessProbe"`
		Liveness  probe `yaml:"livenessProbe"`
		Startup   probe `yaml:"startupProbe"`
		Security  struct {
			Escalation   *bool `yaml:"allowPrivilegeEscalation"`
			ReadOnly     bool  `yaml:"readOnlyRootFilesystem"`
			Capabilities struct{ Drop []string }
		} `yaml:"securityContext"`
		Mounts []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	}
	Volumes []struct {
		Name      string
		ConfigMap struct{ Name string } `yaml:"configMap"`
		Secret    struct {
			SecretName string `yaml:"secretName"`
			Items      []struct{ Key, Path string }
		}
		Claim struct {
			ClaimName string `yaml:"claimName"`
		} `yaml:"persistentVolumeClaim"`
	}
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

func TestKubernetes(t *testing.T) {
	all := manifests(t, "kubernetes.yaml")
	for _, kind := range []string{"Namespace robotsgate", "ConfigMap robotsgate", "Secret robotsgate-ca", "PersistentVolumeClaim robotsgate-data",
		"Deployment robotsgate", "Service robotsgate", "NetworkPolicy robotsgate", "NetworkPolicy only-through-the-gate"} {
		if _, ok := all[kind]; !ok {
			t.Fatalf("deploy/kubernetes.yaml has no %s", kind)
		}
	}
	image := dockerfile(t)
	settings := validConfig(t, all["ConfigMap robotsgate"].Data["config.yaml"])
	deployment := all["Deployment robotsgate"].Spec.Template
	gate := deployment.Spec.Containers[0]
	ports := map[string]string{}
	for _, p := range gate.Ports {
		ports[p.Name] = strconv.Itoa(p.ContainerPort)
	}

	t.Run("ports and probes", func(t *testing.T) {
		wantSame(t, "listen", settings.Listen, "0.0.0.0:"+ports["proxy"])
		wantSame(t, "admin.listen", settings.Admin.Listen, "0.0.0.0:"+ports["admin"])
		wantSame(t, "ports of the image", final(t, image, "EXPOSE"), ports["proxy"]+" "+ports["admin"])
		for _, p := range []struct {
			name string
			is   probe
			path string
		}{{"readiness", gate.Readiness, "/readyz"}, {"liveness", gate.Liveness, "/healthz"}, {"startup", gate.Startup, "/healthz"}} {
			wantSame(t, p.name, p.is.HTTPGet.Path+" "+p.is.HTTPGet.Port, p.path+" admin")
		}
		service := all["Service robotsgate"].Spec
		wantSame(t, "port of the service", fmt.Sprint(service.Ports), fmt.Sprintf("[{%s proxy}]", ports["proxy"]))
	})
	t.Run("labels select the pods", func(t *testing.T) {
		labels := fmt.Sprint(deployment.Metadata.Labels)
		var direct map[string]string
		service := all["Service robotsgate"].Spec.Selector
		if err := service.Decode(&direct); err != nil {
			t.Fatal(err)
		}
		wantSame(t, "of the service", fmt.Sprint(direct), labels)
		var matching struct {
			Labels map[string]string `yaml:"matchLabels"`
		}
		selector := all["Deployment robotsgate"].Spec.Selector
		if err := selector.Decode(&matching); err != nil {
			t.Fatal(err)
		}
		wantSame(t, "of the deployment", fmt.Sprint(matching.Labels), labels)
		wantSame(t, "of the policy", fmt.Sprint(all["NetworkPolicy robotsgate"].Spec.PodSelector.MatchLabels), labels)
	})
	t.Run("the image is the Dockerfile's", func(t *testing.T) {
		var compose composeFile
		if err := yaml.Unmarshal([]byte(gatetest.Read(t, "../../deploy/compose.yaml")), &compose); err != nil {
			t.Fatal(err)
		}
		wantSame(t, "name", gate.Image, compose.Services["gate"].Image)
		understood(t, gate.Args)
		wantSame(t, "arguments", strings.Join(gate.Args, " "), strings.Join(execForm(t, final(t, image, "CMD")), " "))
		s := deployment.Spec.Security
		wantSame(t, "user", fmt.Sprintf("%d:%d", s.RunAsUser, s.RunAsGroup), final(t, image, "USER"))
		wantSame(t, "group of the volumes", s.FSGroup, s.RunAsGroup)
		if c := gate.Security; !s.RunAsNonRoot || c.Escalation == nil || *c.Escalation || !c.ReadOnly || !slices.Equal(c.Capabilities.Drop, []string{"ALL"}) {
			t.Errorf("not hardened: %+v %+v", s, c)
		}
	})
	t.Run("mounts and volumes match", func(t *testing.T) {
		at := map[string]string{}
		for _, m := range gate.Mounts {
			at[m.Name] = m.MountPath
		}
		wantSame(t, "configuration", filepath.Dir(gate.Args[2]), at["config"])
		wantSame(t, "data_dir", settings.DataDir, at["data"])
		wantSame(t, "directory of the CA", at["ca"], "/ca")
		for _, v := range deployment.Spec.Volumes {
			switch v.Name {
			case "config":
				wantSame(t, "ConfigMap", v.ConfigMap.Name, "robotsgate")
			case "data":
				wantSame(t, "claim", v.Claim.ClaimName, "robotsgate-data")
			case "ca":
				wantSame(t, "Secret", v.Secret.SecretName, "robotsgate-ca")
				wantSame(t, "files", fmt.Sprint(v.Secret.Items), "[{ca.pem ca.pem} {ca-key.pem ca-key.pem}]")
			default:
				t.Errorf("the volume %s is not used", v.Name)
			}
		}
		if secret := all["Secret robotsgate-ca"]; len(secret.Data) > 0 || secret.Type != "Opaque" {
			t.Errorf("applying the file again would overwrite the CA: %+v", secret)
		}
	})
	t.Run("the gate has time to end", func(t *testing.T) {
		if grace := time.Duration(deployment.Spec.Grace) * time.Second; grace <= shutdownTime(settings) || settings.Limits.ShutdownDelay == 0 {
			t.Errorf("terminationGracePeriodSeconds is %v, the gate takes up to %v", grace, shutdownTime(settings))
		}
	})
	t.Run("network policies", func(t *testing.T) {
		in := all["NetworkPolicy robotsgate"].Spec
		wantSame(t, "ingress of the gate", fmt.Sprint(in.Ingress[0].Ports, in.Ingress[1].Ports, len(in.Ingress)), fmt.Sprintf("[{%s}] [{%s}] 2", ports["proxy"], ports["admin"]))
		var excluded []string
		for _, to := range in.Egress {
			for _, peer := range to.To {
				excluded = append(excluded, peer.IPBlock.Except...)
			}
		}
		for _, private := range []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10", "fc00::/7", "fe80::/10"} {
			if !slices.Contains(excluded, private) {
				t.Errorf("the gate may connect to %s", private)
			}
		}
		crawlers := all["NetworkPolicy only-through-the-gate"]
		wantSame(t, "namespace of the crawlers", crawlers.Metadata.Namespace, all["Namespace crawlers"].Metadata.Name)
		wantSame(t, "pods and policy types", fmt.Sprint(crawlers.Spec.PodSelector.MatchLabels, crawlers.Spec.PolicyTypes), "map[] [Egress]")
		wantSame(t, "egress of a crawler", fmt.Sprint(crawlers.Spec.Egress[0].Ports, crawlers.Spec.Egress[1].Ports, len(crawlers.Spec.Egress)), fmt.Sprintf("[{%s}] [{53} {53}] 2", ports["proxy"]))
		for _, to := range crawlers.Spec.Egress {
			for _, peer := range to.To {
				if peer.IPBlock.CIDR != "" {
					t.Errorf("crawlers may connect to %s without the gate", peer.IPBlock.CIDR)
				}
			}
		}
	})
}
