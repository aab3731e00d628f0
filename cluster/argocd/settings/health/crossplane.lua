-- Health of Crossplane's own kinds that carry Steading: packages, their revisions, and what they define. Argo CD's built-in
-- script takes the first condition that is True for all, and calls a package Degraded while it is being installed.

-- The conditions that have to be True, in the order in which they come about.
local wanted = {
  Configuration = { "Installed", "Healthy" },
  Function = { "Installed", "Healthy" },
  Provider = { "Installed", "Healthy" },
  ConfigurationRevision = { "RevisionHealthy" },
  FunctionRevision = { "RevisionHealthy", "RuntimeHealthy" },
  ProviderRevision = { "RevisionHealthy", "RuntimeHealthy" },
  CompositeResourceDefinition = { "Established" },
  CompositionRevision = { "ValidPipeline" },
  ManagedResourceDefinition = { "Established" },
  ManagedResourceActivationPolicy = { "Healthy" },
}

-- What Crossplane says of a package that it has only begun with.
local beginning = {
  ['Package revision health is "Unknown"'] = true,
  ['Package runtime health is "Unknown"'] = true,
  ["Package revision health is \"False\" with message: cannot establish control of object: waiting for package runtime controller to set revision's webhook TLS secret"] = true,
  ["cannot establish control of object: waiting for package runtime controller to set revision's webhook TLS secret"] = true,
  ['Package runtime health is "False" with message: function package deployment has no condition of type "Available" yet'] = true,
  ['Package runtime health is "False" with message: provider package deployment has no condition of type "Available" yet'] = true,
  ["Package runtime health is \"False\" with message: function package deployment is unavailable with message: Deployment does not have minimum availability."] = true,
  ["Package runtime health is \"False\" with message: provider package deployment is unavailable with message: Deployment does not have minimum availability."] = true,
}

local meta, spec, status = obj.metadata, obj.spec or {}, obj.status or {}
local conditions = {}
for _, c in ipairs(status.conditions or {}) do
  conditions[c.type] = c
end

local function current(c)
  return c.observedGeneration == nil or c.observedGeneration == 0 or c.observedGeneration >= meta.generation
end

if meta.deletionTimestamp ~= nil then
  return { status = "Progressing", message = "being deleted" }
elseif (meta.annotations or {})["crossplane.io/paused"] == "true" or (conditions.Synced ~= nil and conditions.Synced.reason == "ReconcilePaused") then
  return { status = "Suspended", message = "paused" }
elseif spec.desiredState == "Inactive" then
  -- A revision that another has replaced.
  return { status = "Healthy", message = "inactive" }
elseif obj.kind == "ManagedResourceDefinition" and spec.state == "Inactive" then
  return { status = "Healthy", message = "inactive" }
end

local order = wanted[obj.kind] or {}
if obj.kind == "CompositeResourceDefinition" and spec.claimNames ~= nil then
  order = { "Established", "Offered" }
end

local waits
for _, kind in ipairs(order) do
  local c = conditions[kind]
  if c == nil then
    waits = waits or kind .. " is not known yet"
  elseif not current(c) then
    waits = waits or "it was changed, and nobody has looked at that yet"
  elseif c.status ~= "True" then
    if c.reason == "InactivePackageRevision" then
      return { status = "Suspended", message = "its revision waits to be activated by hand" }
    elseif c.status == "False" and c.message ~= nil and c.message ~= "" and not beginning[c.message] then
      return { status = "Degraded", message = c.message }
    end
    waits = waits or kind .. " is not True yet"
  end
end
if waits ~= nil then
  return { status = "Progressing", message = waits }
end
return { status = "Healthy", message = "" }
