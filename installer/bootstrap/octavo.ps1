# Installs Octavo where there is no fitting Python (Windows):
#     powershell -ExecutionPolicy Bypass -File installer\bootstrap\octavo.ps1
# uv brings one. It is taken from PATH, or fetched by its makers' own script; what is fetched lies in the
# program's folder and goes with it when Octavo is uninstalled.
$ErrorActionPreference = "Stop"
Set-Location -LiteralPath (Join-Path $PSScriptRoot "..\..")
$program = Join-Path $env:LOCALAPPDATA "Programs\Octavo"

$env:PATH = (Join-Path $program "uv") + ";" + $env:PATH
if (-not (Get-Command uv -ErrorAction SilentlyContinue)) {
    Write-Host "Fetching uv, which brings a Python, from astral.sh ..."
    [Net.ServicePointManager]::SecurityProtocol = [Net.SecurityProtocolType]::Tls12
    $env:UV_UNMANAGED_INSTALL = Join-Path $program "uv"
    Invoke-Expression (Invoke-RestMethod "https://astral.sh/uv/install.ps1")
}
$env:UV_PYTHON_INSTALL_DIR = Join-Path $program "python"
$env:UV_NO_CACHE = "1"
uv run --no-project --python 3.12 -m installer install @args
exit $LASTEXITCODE
